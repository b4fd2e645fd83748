#include "tree/pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "tree/shrink.h"

namespace spinney {

namespace {

constexpr std::string_view array_names[] = {
    "shape",          "feature",          "threshold",    "flags",       "sets",
    "n_rows",         "weight",           "leaf_counts",  "value_leaf",  "value_inner",
    "impurity_leaf",  "impurity_inner",   "split_counts", "split_roles", "split_flags",
    "split_features", "split_thresholds", "split_sets",   "split_rows",  "split_improve",
    "split_adjusted", "shrinkage",        "line_counts",  "line_bases",  "line_features",
    "line_slopes",    "line_middles",     "line_lows",    "line_highs"};

// Values of a tree by split and by leaf, each in preorder.
template <class T>
struct Parts {
  std::vector<T> inner, leaf;
};

template <class T>
Parts<T> part(const Tree& t, const std::vector<T>& by_node, std::size_t width = 1) {
  Parts<T> parts;
  for (std::size_t i = 0; i < t.size(); ++i) {
    auto& to = t.is_leaf(i) ? parts.leaf : parts.inner;
    to.insert(to.end(), by_node.begin() + static_cast<std::ptrdiff_t>(i * width),
              by_node.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  }
  return parts;
}

template <class T>
std::vector<T> join(const Tree& t, const Parts<T>& parts, std::size_t width = 1) {
  std::vector<T> by_node(t.size() * width);
  const T* next[] = {parts.inner.data(), parts.leaf.data()};  // branch-free, because the branch is unpredictable
  for (std::size_t i = 0; i < t.size(); ++i) {
    const T*& from = next[t.is_leaf(i)];
    std::copy_n(from, width, by_node.begin() + static_cast<std::ptrdiff_t>(i * width));
    from += width;
  }
  return by_node;
}

// Returns whether each split's entry is the sum of its children's.
template <class T>
bool adds_up(const Tree& t, const std::vector<T>& by_node, std::size_t width = 1) {
  for (std::size_t i = 0; i < t.size(); ++i)
    for (std::size_t k = 0; k < width && !t.is_leaf(i); ++k)
      if (by_node[i * width + k] != by_node[(i + 1) * width + k] + by_node[t.right[i] * width + k]) return false;
  return true;
}

// Computes the values of the splits from the last to the first. A sum may be wrong in a damaged file, but not
// undefined.
template <class T>
std::vector<T> sum_up(const Tree& t, std::vector<T> leaf, std::size_t width = 1) {
  std::vector<T> sums = join(t, Parts<T>{std::vector<T>(t.size() / 2 * width), std::move(leaf)}, width);
  for (std::size_t i = t.size(); i-- > 0;)
    for (std::size_t k = 0; k < width && !t.is_leaf(i); ++k)
      sums[i * width + k] = sums[(i + 1) * width + k] + sums[t.right[i] * width + k];
  return sums;
}

// ---- numbers in the fewest bytes ------------------------------------------------------------------

template <class Narrow>
bool holds(double x) {
  if constexpr (std::is_integral_v<Narrow>)
    return x >= 0 && x <= static_cast<double>(std::numeric_limits<Narrow>::max()) && x == std::floor(x) &&
           !std::signbit(x);
  else
    return std::abs(x) <= static_cast<double>(std::numeric_limits<Narrow>::max())
               ? static_cast<double>(static_cast<Narrow>(x)) == x
               : std::isinf(x);
}

class Writer {
 public:
  Writer(std::uint32_t tree, std::vector<StoredArray>& arrays) : tree_(tree), arrays_(arrays) {}

  template <class T>
  void write(const char* name, const std::vector<T>& values) {
    if (values.empty()) return;
    if (try_as<std::uint8_t>(name, ElementType::u8, values) || try_as<std::uint16_t>(name, ElementType::u16, values) ||
        try_as<std::uint32_t>(name, ElementType::u32, values) || try_as<float>(name, ElementType::f32, values))
      return;
    write_as<double>(name, ElementType::f64, values);
  }

  template <class T>
  void write_once_if_all_equal(const char* name, std::vector<T> values) {
    const auto same = [&](const T& v) { return std::memcmp(&v, values.data(), sizeof v) == 0; };
    if (!values.empty() && std::all_of(values.begin(), values.end(), same)) values.resize(1);
    write(name, values);
  }

 private:
  template <class Narrow, class T>
  bool try_as(const char* name, ElementType type, const std::vector<T>& values) {
    if (!std::all_of(values.begin(), values.end(), [](T v) { return holds<Narrow>(static_cast<double>(v)); }))
      return false;
    write_as<Narrow>(name, type, values);
    return true;
  }

  template <class Narrow, class T>
  void write_as(const char* name, ElementType type, const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(Narrow), '\0');
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto v = static_cast<Narrow>(values[i]);
      std::memcpy(bytes.data() + i * sizeof v, &v, sizeof v);
    }
    arrays_.push_back({name, tree_, type, values.size(), std::move(bytes)});
  }

  std::uint32_t tree_;
  std::vector<StoredArray>& arrays_;
};

[[noreturn]] void refuse(std::string_view name, const char* why) {
  throw std::invalid_argument("is damaged: a tree's array '" + std::string(name) + "' " + why);
}

template <class Narrow, class T>
void copy_numbers(const ArrayView& array, std::vector<T>& out) {
  for (std::size_t i = 0; i < array.count; ++i) {
    Narrow v;
    std::memcpy(&v, array.data + i * sizeof v, sizeof v);
    out[i] = static_cast<T>(v);
  }
}

template <class T>
std::vector<T> numbers(const ArrayView& array) {
  if (std::is_integral_v<T> && (array.type >= ElementType::f32 || size_of(array.type) > sizeof(T)))
    refuse(array.name, "has the wrong type");
  std::vector<T> out(array.count);
  switch (array.type) {
    case ElementType::u8:
      copy_numbers<std::uint8_t>(array, out);
      break;
    case ElementType::u16:
      copy_numbers<std::uint16_t>(array, out);
      break;
    case ElementType::u32:
      copy_numbers<std::uint32_t>(array, out);
      break;
    case ElementType::f32:
      if constexpr (std::is_same_v<T, double>) copy_numbers<float>(array, out);
      break;
    case ElementType::f64:
      if constexpr (std::is_same_v<T, double>) copy_numbers<double>(array, out);
      break;
  }
  return out;
}

class Reader {
 public:
  explicit Reader(std::span<const ArrayView> arrays) : arrays_(arrays) {
    for (const ArrayView& a : arrays) {
      if (std::find(std::begin(array_names), std::end(array_names), a.name) == std::end(array_names))
        refuse(a.name, "is unknown");
      if (find(a.name) != &a) refuse(a.name, "occurs twice");
    }
  }

  std::size_t count(std::string_view name) const {
    const ArrayView* array = find(name);
    return array ? array->count : 0;
  }

  template <class T>
  std::vector<T> read(std::string_view name) const {
    const ArrayView* array = find(name);
    return array ? numbers<T>(*array) : std::vector<T>();
  }

  template <class T>
  std::vector<T> read(std::string_view name, std::size_t count) const {
    if (this->count(name) != count) refuse(name, "has the wrong length");
    return read<T>(name);
  }

  template <class T>
  std::vector<T> read_or_repeat(std::string_view name, std::size_t count) const {
    if (this->count(name) != 1 || count == 0) return read<T>(name, count);
    return std::vector<T>(count, read<T>(name)[0]);
  }

 private:
  const ArrayView* find(std::string_view name) const {
    const auto at = std::find_if(arrays_.begin(), arrays_.end(), [&](const ArrayView& a) { return a.name == name; });
    return at == arrays_.end() ? nullptr : &*at;
  }

  std::span<const ArrayView> arrays_;
};

// ---- writing and reading the arrays of a tree -----------------------------------------------------

void write_shape(const Tree& t, Writer& out) {
  std::vector<std::uint8_t> bits((t.size() + 7) / 8, 0);
  for (std::size_t i = 0; i < t.size(); ++i)
    if (!t.is_leaf(i)) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1 << (i % 8));
  out.write("shape", bits);
}

// The shape follows from the split flags: after a leaf comes the right child of the last split without one.
void read_shape(const Reader& in, Tree& t, std::size_t n_nodes) {
  const auto bits = in.read<std::uint8_t>("shape", (n_nodes + 7) / 8);
  const auto feature = in.read<std::uint32_t>("feature");
  t.feature.assign(n_nodes, -1);
  t.right.assign(n_nodes, 0);
  std::vector<std::uint32_t> lacks_right;
  std::size_t n_inner = 0;
  for (std::size_t i = 0; i < n_nodes; ++i) {
    if (bits[i / 8] >> (i % 8) & 1) {
      if (n_inner == feature.size() || feature[n_inner] > INT32_MAX) refuse("feature", "does not match the nodes");
      t.feature[i] = static_cast<std::int32_t>(feature[n_inner++]);
      lacks_right.push_back(static_cast<std::uint32_t>(i));
    } else if (lacks_right.empty() != (i + 1 == n_nodes)) {
      refuse("shape", "is not that of a tree");
    } else if (!lacks_right.empty()) {
      t.right[lacks_right.back()] = static_cast<std::uint32_t>(i + 1);
      lacks_right.pop_back();
    }
  }
  if (!lacks_right.empty()) refuse("shape", "is not that of a tree");
}

void write_sets(const Tree& t, Writer& out) {
  std::vector<std::uint32_t> sets;
  for (std::size_t i = 0; i < t.size(); ++i)
    if (t.flags[i] & Tree::category) {
      const std::uint32_t* set = t.sets.data() + t.set[i];
      sets.insert(sets.end(), set, set + 1 + (*set & ~Tree::list_mark));
    }
  out.write("sets", sets);
}

void read_sets(const Reader& in, Tree& t) {
  t.sets = in.read<std::uint32_t>("sets");
  t.set.assign(t.size(), 0);
  std::size_t at = 0;
  for (std::size_t i = 0; i < t.size(); ++i)
    if (t.flags[i] & Tree::category) {
      if (at >= t.sets.size() || at >= UINT32_MAX) refuse("sets", "ends too early");
      t.set[i] = static_cast<std::uint32_t>(at);
      at += std::size_t{1} + (t.sets[at] & ~Tree::list_mark);
    }
  if (at != t.sets.size()) refuse("sets", "does not match the nodes");
}

template <class T>
void write_sums(const Tree& t, const char* name, const std::vector<T>& by_node, Writer& out) {
  out.write(name, adds_up(t, by_node) ? part(t, by_node).leaf : by_node);
}

template <class T>
std::vector<T> read_sums(const Reader& in, const Tree& t, const char* name) {
  if (in.count(name) == t.size()) return in.read<T>(name);
  return sum_up(t, in.read<T>(name, t.size() / 2 + 1));
}

void write_weight(const Tree& t, Writer& out) {
  if (!std::equal(t.weight.begin(), t.weight.end(), t.n_rows.begin())) write_sums(t, "weight", t.weight, out);
}

std::vector<double> read_weight(const Reader& in, const Tree& t) {
  if (in.count("weight") > 0) return read_sums<double>(in, t, "weight");
  return std::vector<double>(t.n_rows.begin(), t.n_rows.end());
}

// The counts behind class probabilities, or empty if the values are not exactly such fractions.
std::vector<std::uint32_t> counts_of(const Tree& t) {
  std::vector<std::uint32_t> counts(t.value.size());
  for (std::size_t i = 0; i < t.value.size(); ++i) {
    const double weight = t.weight[i / t.value_width], count = std::nearbyint(t.value[i] * weight);
    if (!holds<std::uint32_t>(count) ||
        std::bit_cast<std::uint64_t>(count / weight) != std::bit_cast<std::uint64_t>(t.value[i]))
      return {};
    counts[i] = static_cast<std::uint32_t>(count);
  }
  return counts;
}

void write_values(const Tree& t, Writer& out) {
  const std::vector<std::uint32_t> counts = t.shrinkage > 0 ? counts_before_shrinkage(t) : counts_of(t);
  if (!counts.empty() && adds_up(t, counts, t.value_width)) {
    out.write("leaf_counts", part(t, counts, t.value_width).leaf);
    if (t.shrinkage > 0) out.write("shrinkage", std::vector<double>{t.shrinkage});
    return;
  }
  const Parts<double> values = part(t, t.value, t.value_width);
  out.write("value_leaf", values.leaf);
  out.write("value_inner", values.inner);
}

void read_values(const Reader& in, Tree& t) {
  const bool by_count = in.count("leaf_counts") > 0;
  const char* name = by_count ? "leaf_counts" : "value_leaf";
  const std::size_t n_values = in.count(name), n_leaves = t.size() / 2 + 1;
  if (n_values == 0 || n_values % n_leaves != 0 || n_values / n_leaves > INT32_MAX)
    refuse(name, "has the wrong length");
  t.value_width = static_cast<std::uint32_t>(n_values / n_leaves);
  if (!by_count) {
    const Parts<double> values{in.read<double>("value_inner", t.size() / 2 * t.value_width), in.read<double>(name)};
    t.value = join(t, values, t.value_width);
    return;
  }
  const auto counts = sum_up(t, in.read<std::uint32_t>(name), t.value_width);
  t.value.resize(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) t.value[i] = counts[i] / t.weight[i / t.value_width];
  if (in.count("shrinkage") == 0) return;
  const double strength = in.read<double>("shrinkage", 1)[0];
  if (!(strength > 0 && std::isfinite(strength))) refuse("shrinkage", "is not a valid strength");
  shrink(t, strength);
}

void write_splits(const Tree& t, Writer& out) {
  const SplitList& list = t.splits;
  if (list.size() == 0) return;
  std::vector<std::uint32_t> counts;
  for (std::size_t i = 0; i < t.size(); ++i)
    if (!t.is_leaf(i)) counts.push_back(list.begin[i + 1] - list.begin[i]);
  out.write("split_counts", counts);
  out.write("split_roles", list.role);
  out.write_once_if_all_equal("split_flags", list.flags);
  out.write("split_features", list.feature);
  out.write("split_thresholds", list.threshold);
  out.write("split_sets", list.sets);
  out.write("split_rows", list.count);
  out.write("split_improve", list.improve);
  out.write("split_adjusted", list.adjusted);
}

void read_splits(const Reader& in, Tree& t, std::size_t n_inner) {
  if (in.count("split_counts") == 0) return;
  SplitList& list = t.splits;
  const auto counts = in.read<std::uint32_t>("split_counts", n_inner);
  const std::size_t n = in.count("split_roles");
  std::size_t total = 0, inner = 0;
  list.begin.push_back(0);
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (!t.is_leaf(i)) total += counts[inner++];
    if (total > n) refuse("split_counts", "does not match the splits");
    list.begin.push_back(static_cast<std::uint32_t>(total));
  }
  list.role = in.read<std::uint8_t>("split_roles");
  list.flags = in.read_or_repeat<std::uint8_t>("split_flags", n);
  list.feature = in.read<std::uint32_t>("split_features", n);
  list.threshold = in.read<double>("split_thresholds", n);
  list.sets = in.read<std::uint32_t>("split_sets");
  list.count = in.read<std::uint32_t>("split_rows", n);
  list.improve = in.read<double>("split_improve", n);
  list.adjusted = in.read<double>("split_adjusted", n);
  std::size_t at = 0;
  for (std::size_t s = 0; s < n; ++s) {
    list.set.push_back(static_cast<std::uint32_t>(at));
    for (int side = 0; side < 2 && (list.flags[s] & SplitList::category); ++side) {
      if (at >= list.sets.size()) refuse("split_sets", "ends too early");
      at += std::size_t{1} + list.sets[at];
    }
  }
  if (at != list.sets.size()) refuse("split_sets", "does not match the splits");
}

// Of the leaves, in order; bases of the linear ones.
void write_linear_leaves(const Tree& t, Writer& out) {
  const LinearLeaves& linear_leaves = t.linear_leaves;
  if (linear_leaves.size() == 0) return;
  std::vector<std::uint32_t> counts;
  std::vector<double> bases;
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (!t.is_leaf(i)) continue;
    counts.push_back(linear_leaves.begin[i + 1] - linear_leaves.begin[i]);
    if (counts.back() > 0) bases.push_back(linear_leaves.base[i]);
  }
  out.write("line_counts", counts);
  out.write("line_bases", bases);
  out.write("line_features", linear_leaves.feature);
  out.write("line_slopes", linear_leaves.slope);
  out.write("line_middles", linear_leaves.middle);
  out.write("line_lows", linear_leaves.low);
  out.write("line_highs", linear_leaves.high);
}

void read_linear_leaves(const Reader& in, Tree& t, std::size_t n_leaves) {
  if (in.count("line_counts") == 0) return;
  LinearLeaves& linear_leaves = t.linear_leaves;
  const auto counts = in.read<std::uint32_t>("line_counts", n_leaves);
  const auto n_lines =
      static_cast<std::size_t>(std::count_if(counts.begin(), counts.end(), [](auto c) { return c > 0; }));
  const auto bases = in.read<double>("line_bases", n_lines);
  const std::size_t n = in.count("line_features");
  std::size_t total = 0, leaf = 0, line = 0;
  linear_leaves.begin.push_back(0);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const std::uint32_t count = t.is_leaf(i) ? counts[leaf++] : 0;
    linear_leaves.base.push_back(count > 0 ? bases[line++] : 0.0);
    total += count;
    if (total > n) refuse("line_counts", "does not match the linear leaves");
    linear_leaves.begin.push_back(static_cast<std::uint32_t>(total));
  }
  if (total != n) refuse("line_counts", "does not match the linear leaves");
  linear_leaves.feature = in.read<std::uint32_t>("line_features");
  linear_leaves.slope = in.read<double>("line_slopes", n);
  linear_leaves.middle = in.read<double>("line_middles", n);
  linear_leaves.low = in.read<double>("line_lows", n);
  linear_leaves.high = in.read<double>("line_highs", n);
}

}  // namespace

void pack(const Tree& t, std::uint32_t number, std::vector<StoredArray>& arrays) {
  Writer out(number, arrays);
  write_shape(t, out);
  out.write("feature", part(t, t.feature).inner);
  out.write("threshold", part(t, t.threshold).inner);
  out.write_once_if_all_equal("flags", part(t, t.flags).inner);
  write_sets(t, out);
  write_sums(t, "n_rows", t.n_rows, out);
  write_weight(t, out);
  write_values(t, out);
  const Parts<double> impurity = part(t, t.impurity);
  out.write_once_if_all_equal("impurity_leaf", impurity.leaf);
  out.write_once_if_all_equal("impurity_inner", impurity.inner);
  write_splits(t, out);
  write_linear_leaves(t, out);
}

Tree unpack(std::span<const ArrayView> arrays) {
  const Reader in(arrays);
  const std::size_t n_inner = in.count("feature"), n_leaves = n_inner + 1;
  if (n_inner >= INT32_MAX) refuse("feature", "is too long");
  Tree t;
  read_shape(in, t, n_inner + n_leaves);
  t.threshold = join(t, Parts<double>{in.read<double>("threshold", n_inner), std::vector<double>(n_leaves, 0.0)});
  t.flags = join(t, Parts<std::uint8_t>{in.read_or_repeat<std::uint8_t>("flags", n_inner),
                                        std::vector<std::uint8_t>(n_leaves, 0)});
  read_sets(in, t);
  t.n_rows = read_sums<std::uint32_t>(in, t, "n_rows");
  t.weight = read_weight(in, t);
  read_values(in, t);
  t.impurity = join(t, Parts<double>{in.read_or_repeat<double>("impurity_inner", n_inner),
                                     in.read_or_repeat<double>("impurity_leaf", n_leaves)});
  read_splits(in, t, n_inner);
  read_linear_leaves(in, t, n_leaves);
  return t;
}

}  // namespace spinney
