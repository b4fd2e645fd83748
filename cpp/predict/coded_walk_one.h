// Walks for instruction sets without a fast gather, included by coded_walk_body.cpp.

// A row during its walk: its node, and the number of times it went left.
struct Walk {
  std::uint64_t both;  // in one word, so that one addition moves it

  static constexpr std::uint64_t left_step = std::uint64_t{1} << 32 | 1;
  std::uint32_t at() const { return static_cast<std::uint32_t>(both); }
  std::uint32_t n_left() const { return static_cast<std::uint32_t>(both >> 32); }
  std::uint32_t leaves_behind() const {
    return at() - n_left();
  }  // number of splits passed minus the times it went left
};

constexpr bool codes_by_column = true;  // at a node many rows need the same column

// One step down; returns 1 at a leaf. By masks, because a branch is mispredicted half the time.
template <bool categories>
inline std::uint32_t advance(const CodedTree& tree, const std::uint32_t* row, std::size_t stride, Walk& walk) {
  const CodedNode node = tree.nodes[walk.at()];
  const std::uint32_t code = row[(node.next >> tree.shift) * stride];
  std::uint32_t left = code < node.code;
  if constexpr (categories)
    if (node.next >= tree.category_begins) left = category_goes_left(tree, node, code);
  const std::uint64_t step = (node.next & tree.step_mask) >> 2;
  walk.both += step ^ ((step ^ Walk::left_step) & (0 - std::uint64_t{left}));
  return node.next >> left & 1;
}

// Advances walks 0 … n - 1, at most 128, one step at a time until all have arrived, so that memory latencies overlap.
// advance(k) is 1 if walk k arrives.
constexpr std::size_t most_walks = 128;
template <class Advance>
inline void settle(std::size_t n, Advance&& advance) {
  std::uint8_t even[most_walks],
      odd[most_walks];  // two lists: reading one need not wait for writes to the other
  std::uint8_t *moving = even, *still_moving = odd;
  for (std::size_t k = 0; k < n; ++k) even[k] = static_cast<std::uint8_t>(k);
  for (std::size_t n_moving = n; n_moving > 0;) {
    std::size_t n_still = 0;
    for (std::size_t j = 0; j < n_moving; ++j) {
      const std::uint8_t k = moving[j];
      still_moving[n_still] = k;
      n_still += 1 - advance(k);
    }
    std::uint8_t* const read = moving;
    moving = still_moving;
    still_moving = read;
    n_moving = n_still;
  }
}

// Stable partition of rows by a node, left first; returns the number on the left. Rows do not wait for each other, and
// there is no unpredictable branch. `spare` has space for all.
template <bool categories>
inline std::size_t part(const CodedTree& tree, CodedNode node, std::size_t n, std::uint32_t* row,
                        std::uint32_t* spare) {
  const std::uint32_t* const codes = tree.codes + std::size_t{node.next >> tree.shift} * tree.stride;
  std::size_t n_left = 0;
  const auto deal = [&](auto&& goes_left) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t r = row[i];
      const std::size_t left = goes_left(codes[r]);
      row[n_left] = r;
      spare[i - n_left] = r;
      n_left += left;
    }
  };
  if (categories && node.next >= tree.category_begins)
    deal([&](std::uint32_t code) { return category_goes_left(tree, node, code); });
  else
    deal([&](std::uint32_t code) { return code < node.code; });
  __builtin_memcpy(row + n_left, spare, (n - n_left) * sizeof *row);
  return n_left;
}

// Rows walking down one tree. Many of them go together and are partitioned at each node as in tree growth; small groups
// continue row by row. leaf[i] belongs to row[i], and is scratch while row[i] moves.
template <bool categories>
class RowGroup {
 public:
  RowGroup(const CodedTree& tree, bool in_preorder, std::uint32_t* row, std::uint32_t* leaf)
      : tree_(tree), in_preorder_(in_preorder), row_(row), leaf_(leaf) {}

  void walk(std::size_t n) {
    Range waiting[64];  // the larger part waits, so that each is at most half of the one below
    std::size_t n_waiting = 0;
    Range here{0, n, {0}};
    while (true) {
      Range other{};
      if (here.n <= few)
        leave(here);
      else
        other = partition_range(here);
      if (other.n > 0) waiting[n_waiting++] = other;
      if (here.n > 0) continue;
      if (n_waiting == 0) break;
      here = waiting[--n_waiting];
    }
    finish_single_rows();
  }

 private:
  static constexpr std::size_t few = 4;  // a node costs as much as a few steps
  struct Range {
    std::size_t begin, n;
    Walk walk;
  };
  struct Alone {
    std::size_t place;
    const std::uint32_t* codes;
    Walk walk;
  };

  // `here` becomes its smaller part that has not arrived, unless that is empty; returns the larger part.
  Range partition_range(Range& here) {
    const CodedNode node = tree_.nodes[here.walk.at()];
    const std::size_t n_left = part<categories>(tree_, node, here.n, row_ + here.begin, leaf_ + here.begin);
    const std::uint64_t step = (node.next & tree_.step_mask) >> 2;
    Range left{here.begin, n_left, {here.walk.both + Walk::left_step}};
    Range right{here.begin + n_left, here.n - n_left, {here.walk.both + step}};
    if (node.next & 2) arrive(left);
    if (node.next & 1) arrive(right);
    const bool left_first = right.n == 0 || (0 < left.n && left.n <= right.n);
    here = left_first ? left : right;
    return left_first ? right : left;
  }

  void leave(Range& here) {
    if (n_alone_ + here.n > most_walks) finish_single_rows();
    for (std::size_t i = here.begin; i < here.begin + here.n; ++i)
      alone_[n_alone_++] = {i, tree_.codes + row_[i], here.walk};
    here.n = 0;
  }

  void finish_single_rows() {
    settle(n_alone_,
           [&](std::size_t k) { return advance<categories>(tree_, alone_[k].codes, tree_.stride, alone_[k].walk); });
    for (std::size_t k = 0; k < n_alone_; ++k) leaf_[alone_[k].place] = leaf_of(alone_[k].walk);
    n_alone_ = 0;
  }

  void arrive(Range& range) {
    for (std::size_t i = range.begin; i < range.begin + range.n; ++i) leaf_[i] = leaf_of(range.walk);
    range.n = 0;
  }

  std::uint32_t leaf_of(Walk walk) const { return walk.leaves_behind() + (in_preorder_ ? walk.at() : 0); }

  const CodedTree tree_;
  const bool in_preorder_;
  std::uint32_t* const row_;
  std::uint32_t* const leaf_;
  Alone alone_[most_walks];
  std::size_t n_alone_ = 0;
};

template <bool categories>
void walk_rows(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
               std::uint32_t* leaf) {
  for (std::size_t i = 0; i < n; ++i) row[i] = members[i];
  RowGroup<categories>(tree, in_preorder, row, leaf).walk(n);
}

void walk(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
          std::uint32_t* leaf) {
  (tree.has_categories ? walk_rows<true> : walk_rows<false>)(tree, members, n, in_preorder, row, leaf);
}

template <bool categories>
void walk_all(const CodedTree tree, std::size_t n_trees, const std::uint32_t* first, std::uint32_t* leaf) {
  Walk walks[most_walks];
  for (std::size_t begin = 0; begin < n_trees; begin += most_walks) {
    const std::size_t n = n_trees - begin < most_walks ? n_trees - begin : most_walks;
    for (std::size_t k = 0; k < n; ++k) walks[k] = {first[begin + k]};
    settle(n, [&](std::size_t k) { return advance<categories>(tree, tree.codes, 1, walks[k]); });
    for (std::size_t k = 0; k < n; ++k) leaf[begin + k] += walks[k].leaves_behind() - first[begin + k];
  }
}

void walk_trees(const CodedTree& tree, std::size_t n_trees, const std::uint32_t* first, std::uint32_t* leaf) {
  (tree.has_categories ? walk_all<true> : walk_all<false>)(tree, n_trees, first, leaf);
}

typedef double Doubles __attribute__((vector_size(register_bytes)));
typedef std::int64_t Counts __attribute__((vector_size(register_bytes)));

inline std::uint32_t count_below(const Sixteen& sixteen, double x) {
  constexpr std::size_t lanes = register_bytes / sizeof(double);
  const Doubles value = Doubles{} + x;
  Counts counts = {};
  for (std::size_t i = 0; i < 16; i += lanes) {
    Doubles threshold;
    __builtin_memcpy(&threshold, sixteen.threshold + i, sizeof threshold);
    counts -= reinterpret_cast<Counts>(threshold < value);
  }
  std::int64_t count = 0;
  for (std::size_t k = 0; k < lanes; ++k) count += counts[k];
  return static_cast<std::uint32_t>(count);
}

// Binary search of several values at a time, so that their latencies overlap. At most 15 thresholds of a group are
// below a value, so four steps suffice.
template <std::size_t n>
SPINNEY_INLINE void descend_few(const Sixteen* level, const double* x, std::uint32_t* rank) {
  const double* const threshold = level->threshold;
  std::size_t at[n];  // not pointers: GCC would update those by branches
  for (std::size_t k = 0; k < n; ++k) at[k] = std::size_t{rank[k]} * 16;
#pragma GCC unroll 4
  for (std::size_t step = 8; step > 0; step /= 2)
    for (std::size_t k = 0; k < n; ++k) at[k] += threshold[at[k] + step - 1] < x[k] ? step : 0;
  for (std::size_t k = 0; k < n; ++k) rank[k] = static_cast<std::uint32_t>(at[k]);
}

// From a group of the level above to a position in this level, for n values. Registers of two thresholds are too narrow
// to compare all 16: binary search takes a third of the time.
inline void descend(const Sixteen* level, const double* x, std::size_t n, std::uint32_t* rank) {
  std::size_t i = 0;
  if constexpr (register_bytes == 16)
    for (; i + 8 <= n; i += 8) descend_few<8>(level, x + i, rank + i);
  for (; i < n; ++i) rank[i] = rank[i] * 16 + count_below(level[rank[i]], x[i]);
}
