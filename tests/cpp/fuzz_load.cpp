// libFuzzer target: any bytes are either refused with std::invalid_argument or give trees that are safe to use.
// CONTRIBUTING.md has the command. Checksum, magic and size are corrected first, because otherwise no input would pass.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "predict/walk.h"
#include "tree/container.h"
#include "tree/pack.h"
#include "tree/prune.h"
#include "tree/validate.h"

using namespace spinney;

static constexpr std::size_t n_columns = 64;
static constexpr std::uint32_t n_codes = 2000;

static std::string sealed(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size < 40) return file;
  const std::uint64_t whole = size;
  std::memcpy(file.data(), "\x89spinney", 8);
  std::memcpy(file.data() + 16, &whole, 8);
  const std::uint32_t sum = checksum({reinterpret_cast<const unsigned char*>(file.data()), size});
  std::memcpy(file.data() + checksum_at, &sum, 4);
  return file;
}

// Columns that match the tree, so that the validator gets past the first node.
static std::vector<std::uint32_t> kinds_of(const Tree& t) {
  std::vector<std::uint32_t> n_categories(n_columns, 0);
  for (std::size_t i = 0; i < t.size(); ++i)
    if (!t.is_leaf(i) && (t.flags[i] & Tree::category) && static_cast<std::size_t>(t.feature[i]) < n_columns)
      n_categories[static_cast<std::size_t>(t.feature[i])] = n_codes;
  for (std::size_t k = 0; k < t.splits.size(); ++k)
    if ((t.splits.flags[k] & SplitList::category) && t.splits.feature[k] < n_columns)
      n_categories[t.splits.feature[k]] = n_codes;
  return n_categories;
}

static void use(const Tree& t) {
  const Walker walker(t);
  for (const double x : {0.0, 1.0, 40.0, 1999.0, 2000.0, std::nan(""), 0.5}) {
    const std::vector<double> row(n_columns, x);
    const std::uint32_t at = walker.apply_one(row.data());
    if (!t.is_leaf(at) && !(t.flags[at] & Tree::stops)) std::abort();
  }
  if (t.size() < 1000) prune(t, impurity_risks(t), 0.01);
}

static bool equal(const SplitList& a, const SplitList& b) {
  return a.begin == b.begin && a.role == b.role && a.flags == b.flags && a.feature == b.feature &&
         a.threshold == b.threshold && a.count == b.count && a.improve == b.improve && a.adjusted == b.adjusted;
}

static bool equal(const Tree& a, const Tree& b) {
  return equal(a.splits, b.splits) && a.feature == b.feature && a.threshold == b.threshold && a.right == b.right &&
         a.flags == b.flags && a.set == b.set && a.sets == b.sets && a.impurity == b.impurity && a.weight == b.weight &&
         a.n_rows == b.n_rows && a.value == b.value && a.value_width == b.value_width;
}

static void pack_and_compare(const Tree& t) {
  std::vector<StoredArray> arrays;
  pack(t, 0, arrays);
  const std::string file = write_model("{}", arrays);
  const Bytes bytes(reinterpret_cast<const unsigned char*>(file.data()), file.size());
  if (!equal(t, unpack(read_model(bytes).arrays_of(0)))) std::abort();
}

static void load(const std::string& file) try {
  const Bytes bytes(reinterpret_cast<const unsigned char*>(file.data()), file.size());
  const ModelView model = read_model(bytes);
  for (std::uint32_t i = 0; i < model.n_trees; ++i) {
    const Tree t = unpack(model.arrays_of(i));
    if (!find_fault(t, kinds_of(t)).empty()) continue;
    use(t);
    pack_and_compare(t);
  }
} catch (const std::invalid_argument&) {
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  load(std::string(reinterpret_cast<const char*>(data), size));
  load(sealed(data, size));
  return 0;
}
