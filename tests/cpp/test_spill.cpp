#include <memory>
#include <stdexcept>

#include "base/large_array.h"
#include "base/spill.h"
#include "base/spilled_vector.h"
#include "check.h"

using namespace spinney;

TEST(sealed_files_are_verified) {
  const auto spill = std::make_shared<Spill>("/tmp", 1 << 16);
  LargeArray<std::uint32_t> sealed(700'000, spill), open(1000, spill);
  for (std::size_t i = 0; i < sealed.size(); ++i) sealed.data()[i] = static_cast<std::uint32_t>(i * i);
  sealed.seal();
  open.data()[3] = 7;
  spill->verify();
  CHECK_EQ(spill->n_releases(), std::size_t{6});  // three chunks, twice
  sealed.data()[650'000] ^= 1u << 30;
  CHECK_THROWS(spill->verify(), std::runtime_error);
  sealed = {};
  spill->verify();
  LargeArray<int>(5).seal();  // no effect in memory
}

TEST(vectors_are_allocated_where_requested) {
  const auto spill = std::make_shared<Spill>("/tmp", 1 << 12);
  RowVector<double> in_file(spill), in_memory;
  for (int i = 0; i < 5000; ++i) {
    in_file.push_back(i);
    in_memory.push_back(i);
  }
  spill->touch(1 << 20);
  CHECK(in_file.size() == 5000 && in_file.back() == 4999.0);
  RowVector<double> other = in_file;
  CHECK(other.get_allocator() == in_file.get_allocator() && !(in_memory.get_allocator() == in_file.get_allocator()));
  in_memory.swap(other);
  CHECK(in_memory[17] == 17.0 && in_memory.get_allocator().spill() == spill);
}
