// Walks one step of one row at a time, where the instruction set cannot gather well: a part of coded_walk_body.cpp.

// A row on its way: the node it is at, and how often it went left. The leaves behind it are as many as the splits, less the
// times it went left.
struct Walk {
  std::uint64_t both;  // in one word, to be moved by one addition

  static constexpr std::uint64_t left_step = std::uint64_t{1} << 32 | 1;
  std::uint32_t at() const { return static_cast<std::uint32_t>(both); }
  std::uint32_t n_left() const { return static_cast<std::uint32_t>(both >> 32); }
};

// One step down; 1 in a leaf. By masks: a branch is wrong half the time.
template <bool categories>
inline std::uint32_t advance(const CodedTree& tree, const std::uint32_t* row, Walk& walk) {
  const CodedNode node = tree.nodes[walk.at()];
  const std::uint32_t code = row[node.next >> tree.shift];
  std::uint32_t left = code < node.code;
  if constexpr (categories)
    if (node.next >= tree.category_begins) left = category_goes_left(tree, node, code);
  const std::uint64_t step = (node.next & tree.step_mask) >> 2;
  walk.both += step ^ ((step ^ Walk::left_step) & (0 - std::uint64_t{left}));
  return node.next >> left & 1;
}

// Several rows at a time: while one waits for memory, the others go on. Who arrives makes room for the next.
template <bool categories>
void walk_rows(const CodedTree tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
               std::uint32_t* leaf) {
  constexpr std::size_t most = 16;
  struct Lane {
    const std::uint32_t* codes;
    Walk walk;
    std::uint32_t member;
  };
  const auto seated = [&](std::uint32_t m) { return Lane{tree.codes + std::size_t{m} * tree.width, {0}, m}; };
  Lane lanes[most];
  std::size_t next = 0, n_lanes = n < most ? n : most, n_done = 0;
  for (; next < n_lanes; ++next) lanes[next] = seated(members[next]);
  const auto arrive = [&](const Lane& lane) {
    row[n_done] = lane.member;
    leaf[n_done++] = lane.walk.at() - lane.walk.n_left() + (in_preorder ? lane.walk.at() : 0);
  };
  while (next + most <= n)  // enough rows for all: none need look whether there is one
    for (Lane& lane : lanes) {
      if (!advance<categories>(tree, lane.codes, lane.walk)) continue;
      arrive(lane);
      lane = seated(members[next++]);
    }
  while (n_lanes > 0)
    for (std::size_t k = 0; k < n_lanes; ++k) {
      Lane& lane = lanes[k];
      if (!advance<categories>(tree, lane.codes, lane.walk)) continue;
      arrive(lane);
      lane = next < n ? seated(members[next++]) : lanes[--n_lanes];
    }
}

void walk(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
          std::uint32_t* leaf) {
  (tree.has_categories ? walk_rows<true> : walk_rows<false>)(tree, members, n, in_preorder, row, leaf);
}

template <bool categories>
void walk_all(const CodedTree tree, std::size_t n_trees, const std::uint32_t* first, std::uint32_t* leaf) {
  constexpr std::size_t most = 128;
  Walk walks[most];
  std::uint8_t even[most], odd[most];  // two lists: reading one need not wait for what is written to the other
  for (std::size_t begin = 0; begin < n_trees; begin += most) {
    const std::size_t n = n_trees - begin < most ? n_trees - begin : most;
    for (std::size_t k = 0; k < n; ++k) {
      walks[k] = {first[begin + k]};
      even[k] = static_cast<std::uint8_t>(k);
    }
    std::uint8_t *moving = even, *still_moving = odd;
    for (std::size_t n_moving = n; n_moving > 0;) {
      std::size_t n_still = 0;
      for (std::size_t j = 0; j < n_moving; ++j) {
        const std::uint8_t k = moving[j];
        still_moving[n_still] = k;
        n_still += 1 - advance<categories>(tree, tree.codes, walks[k]);
      }
      std::uint8_t* const read = moving;
      moving = still_moving;
      still_moving = read;
      n_moving = n_still;
    }
    for (std::size_t k = 0; k < n; ++k) leaf[begin + k] += walks[k].at() - walks[k].n_left() - first[begin + k];
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

// By halving, several values at a time: each has to wait for its last comparison, the processor has not. Fewer than 16
// thresholds of a group lie below, so four steps do.
template <std::size_t n>
SPINNEY_INLINE void descend_few(const Sixteen* level, const double* x, std::uint32_t* rank) {
  const double* const threshold = level->threshold;
  std::size_t at[n];  // not pointers: GCC would move those by branches
  for (std::size_t k = 0; k < n; ++k) at[k] = std::size_t{rank[k]} * 16;
#pragma GCC unroll 4
  for (std::size_t step = 8; step > 0; step /= 2)
    for (std::size_t k = 0; k < n; ++k) at[k] += threshold[at[k] + step - 1] < x[k] ? step : 0;
  for (std::size_t k = 0; k < n; ++k) rank[k] = static_cast<std::uint32_t>(at[k]);
}

// From a group of the level above to a place in this level, for n values. Registers of two thresholds are too narrow to count
// all 16 in: halving takes a third of the time there.
inline void descend(const Sixteen* level, const double* x, std::size_t n, std::uint32_t* rank) {
  std::size_t i = 0;
  if constexpr (register_bytes == 16)
    for (; i + 8 <= n; i += 8) descend_few<8>(level, x + i, rank + i);
  for (; i < n; ++i) rank[i] = rank[i] * 16 + count_below(level[rank[i]], x[i]);
}
