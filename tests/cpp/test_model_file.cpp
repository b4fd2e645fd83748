// Model files: trees to bytes and back, and everything that must be refused.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "check.h"
#include "tree/container.h"
#include "tree/pack.h"
#include "tree/validate.h"

using namespace spinney;

static Bytes bytes_of(const std::string& file) {
  return {reinterpret_cast<const unsigned char*>(file.data()), file.size()};
}

static std::string file_of(const Tree& t, std::string_view header = "{}") {
  std::vector<StoredArray> arrays;
  pack(t, 0, arrays);
  return write_model(header, arrays);
}

static std::string seal(std::string file) {
  const std::uint64_t size = file.size();
  std::memcpy(file.data() + 16, &size, 8);
  const std::uint32_t sum = checksum(bytes_of(file));
  std::memcpy(file.data() + checksum_at, &sum, 4);
  return file;
}

static std::string fault_of(const std::string& file) try {
  const ModelView model = read_model(bytes_of(file));
  for (std::uint32_t i = 0; i < model.n_trees; ++i) unpack(model.arrays_of(i));
  return {};
} catch (const std::invalid_argument& error) {
  return error.what();
}

static bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

//        0: x0 <= 1.5
//   1: leaf     2: x1 in {3, 40}
//            3: leaf    4: leaf
static Tree small_tree() {
  Tree t;
  t.value_width = 2;
  const std::uint32_t n_rows[] = {10, 4, 6, 5, 1};
  const double counts[] = {3, 0, 3, 3, 0};
  for (std::size_t i = 0; i < 5; ++i) {
    t.add_leaf();
    t.n_rows[i] = n_rows[i];
    t.weight[i] = n_rows[i];
    t.value_of(i)[0] = counts[i] / n_rows[i];
    t.value_of(i)[1] = (n_rows[i] - counts[i]) / n_rows[i];
    t.impurity[i] = t.value_of(i)[0];
  }
  t.feature[0] = 0;
  t.threshold[0] = 1.5;
  t.right[0] = 2;
  t.feature[2] = 1;
  t.right[2] = 4;
  t.flags[2] = Tree::category | Tree::missing_left;
  const std::vector<std::uint32_t> left{3, 40}, right{0, 7};
  t.set[2] = add_set(t.sets, left, right, false);
  return t;
}

static void check_equal(const Tree& a, const Tree& b) {
  CHECK(a.feature == b.feature && a.right == b.right && a.flags == b.flags && a.n_rows == b.n_rows);
  CHECK(a.set == b.set && a.sets == b.sets);
  CHECK_EQ(a.value_width, b.value_width);
  const auto bit_identical = [](const std::vector<double>& x, const std::vector<double>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
  };
  CHECK(bit_identical(a.threshold, b.threshold));
  CHECK(bit_identical(a.value, b.value));
  CHECK(bit_identical(a.weight, b.weight));
  CHECK(bit_identical(a.impurity, b.impurity));
}

static void check_round_trip(const Tree& t) {
  const std::string file = file_of(t);
  check_equal(t, unpack(read_model(bytes_of(file)).arrays_of(0)));
}

TEST(a_tree_is_restored_bit_for_bit) { check_round_trip(small_tree()); }

TEST(values_that_cannot_be_recomputed_are_stored) {
  const std::vector<std::function<void(Tree&)>> changes{
      [](Tree& t) { t.value[2] = 0.1; },
      [](Tree& t) { t.value[1] = -0.0; },
      [](Tree& t) { t.value[5] = std::nextafter(t.value[5], 1); },
      [](Tree& t) { t.n_rows[0] = 11; },
      [](Tree& t) { t.n_rows[1] = 4000000000u, t.n_rows[2] = 4000000000u; },
      [](Tree& t) { t.weight[0] = 0.1; },
      [](Tree& t) { t.weight[3] = 1e-3, t.weight[2] = 1.001, t.weight[0] = 5.001; },
      [](Tree& t) { t.weight.assign(5, 0.0); },
      [](Tree& t) { t.impurity.assign(5, 0.25); },
      [](Tree& t) { t.impurity[0] = -0.0; },
      [](Tree& t) { t.threshold[0] = 0.1; },
      [](Tree& t) { t.threshold[0] = -std::numeric_limits<double>::infinity(); },
      [](Tree& t) { t.threshold[0] = 70000; },
      [](Tree& t) { t.threshold[0] = 5e-324; },
      [](Tree& t) { t.feature[0] = 70000; },
      [](Tree& t) { t.flags[0] = t.flags[2] = 0, t.set[2] = 0, t.sets.clear(); },
  };
  for (const auto& change : changes) {
    Tree t = small_tree();
    change(t);
    check_round_trip(t);
  }
}

TEST(one_leaf_is_a_tree) {
  Tree t;
  t.add_leaf();
  t.value[0] = 0.3;
  check_round_trip(t);
}

TEST(several_trees_share_a_file) {
  std::vector<StoredArray> arrays;
  Tree other = small_tree();
  other.threshold[0] = 7;
  pack(small_tree(), 0, arrays);
  pack(other, 1, arrays);
  const std::string file = write_model("abc", arrays);
  const ModelView model = read_model(bytes_of(file));
  CHECK_EQ(model.n_trees, 2u);
  CHECK_EQ(model.header, "abc");
  check_equal(small_tree(), unpack(model.arrays_of(0)));
  check_equal(other, unpack(model.arrays_of(1)));
  CHECK(model.arrays_of(2).empty());
}

TEST(the_checksum_is_crc_32) {
  const std::string text = std::string(16, ' ') + "123456789";
  CHECK_EQ(checksum(bytes_of(text)), 0xCBF43926u);
}

TEST(every_cut_and_every_flip_is_noticed) {
  const std::string file = file_of(small_tree());
  for (std::size_t n = 0; n < file.size(); ++n) CHECK(!fault_of(file.substr(0, n)).empty());
  CHECK(has(fault_of(file.substr(0, 100)), "is cut short"));
  CHECK(has(fault_of(file + "x"), "longer"));
  for (std::size_t i = 0; i < file.size() * 8; ++i) {
    std::string flipped = file;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ 1 << (i % 8));
    CHECK(!fault_of(flipped).empty());
  }
}

TEST(newer_formats_are_named) {
  std::string file = file_of(small_tree());
  file[8] = 3;
  CHECK(has(fault_of(file), "newer spinney (format 3, this one reads up to 1): upgrade"));
}

// Wrong lengths and types in files with a right checksum.
TEST(wrong_lengths_are_refused_before_memory_is_allocated) {
  const std::string file = file_of(small_tree());
  const std::size_t table = 40, type = table + 16, tree = table + 20, count = table + 24;
  for (const std::uint64_t wrong :
       {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{1} << 31, UINT64_MAX / 8, UINT64_MAX})
    for (const std::size_t at : {std::size_t{24}, count, count + 32, count + 64}) {
      std::string corrupted = file;
      std::memcpy(corrupted.data() + at, &wrong, 8);
      if (std::memcmp(corrupted.data() + at, file.data() + at, 8) != 0) CHECK(!fault_of(seal(corrupted)).empty());
    }
  for (const std::size_t at : {std::size_t{8}, std::size_t{32}, std::size_t{36}, type, tree, table})
    for (const std::uint32_t wrong : {0u, 7u, 0x7FFFFFFFu, UINT32_MAX}) {
      std::string corrupted = file;
      std::memcpy(corrupted.data() + at, &wrong, 4);
      if (std::memcmp(corrupted.data() + at, file.data() + at, 4) != 0) CHECK(!fault_of(seal(corrupted)).empty());
    }
}

// Random bytes with a right checksum: refused, or well-formed enough for the validator.
TEST(random_damage_never_gets_past_reader_and_validator) {
  const std::string file = file_of(small_tree());
  int n_accepted = 0;
  for (std::uint64_t round = 0; round < 20000; ++round) {
    RandomStream random(round);
    std::string damaged = file;
    for (std::uint64_t k = 0; k < 1 + round % 3; ++k)
      damaged[40 + random.below(damaged.size() - 40)] = static_cast<char>(random.below(256));
    damaged = seal(damaged);
    if (!fault_of(damaged).empty()) continue;
    const Tree t = unpack(read_model(bytes_of(damaged)).arrays_of(0));
    if (find_fault(t, {0, 50}).empty()) ++n_accepted, check_round_trip(t);
  }
  CHECK(n_accepted > 100);
}
