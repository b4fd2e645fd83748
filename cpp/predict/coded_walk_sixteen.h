// Walks and ranks with AVX-512, sixteen rows or trees at a time, included by coded_walk_body.cpp.

// Masked forms throughout: gcc 12 warns about the implementation of the plain ones.
constexpr __mmask16 all = 0xffff;

constexpr bool codes_by_column = false;

struct Walks {    // 16 walks
  __m512i codes;  // first code of the row
  __m512i at, leaf;
  __mmask16 moving;
};

__mmask16 correct_categories(const CodedTree& tree, __m512i node_code, __m512i next, __m512i code, __mmask16 category,
                             __mmask16 left) {
  alignas(64) std::uint32_t node_codes[16], nexts[16], codes[16];
  _mm512_store_si512(node_codes, node_code);
  _mm512_store_si512(nexts, next);
  _mm512_store_si512(codes, code);
  for (std::uint32_t k = 0; k < 16; ++k) {
    if (!(category >> k & 1)) continue;
    const bool goes_left = category_goes_left(tree, {node_codes[k], nexts[k]}, codes[k]);
    left = static_cast<__mmask16>((left & ~(1u << k)) | static_cast<std::uint32_t>(goes_left) << k);
  }
  return left;
}

// One step down for the rows that move.
template <bool categories>
[[gnu::always_inline]] inline void advance(const CodedTree& tree, Walks& lanes) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi32(1);
  const __mmask16 moving = lanes.moving;
  const __m512i low = _mm512_mask_i32gather_epi64(zero, static_cast<__mmask8>(moving),
                                                  _mm512_maskz_extracti64x4_epi64(0xff, lanes.at, 0), tree.nodes, 8);
  const __m512i high = _mm512_mask_i32gather_epi64(zero, static_cast<__mmask8>(moving >> 8),
                                                   _mm512_maskz_extracti64x4_epi64(0xff, lanes.at, 1), tree.nodes, 8);
  const __m512i node_code = _mm512_permutex2var_epi32(low, even, high);
  const __m512i next = _mm512_permutex2var_epi32(low, odd, high);
  const __m512i slot = _mm512_maskz_srl_epi32(all, next, _mm_cvtsi32_si128(static_cast<int>(tree.shift)));
  const __m512i code = _mm512_mask_i32gather_epi32(zero, moving, _mm512_add_epi32(lanes.codes, slot), tree.codes, 4);
  __mmask16 left = _mm512_mask_cmplt_epu32_mask(moving, code, node_code);
  if constexpr (categories) {
    const __m512i begins = _mm512_set1_epi32(static_cast<int>(tree.category_begins));
    const __mmask16 category = _mm512_mask_cmpge_epu32_mask(moving, next, begins);
    if (category) left = correct_categories(tree, node_code, next, code, category, left);
  }
  const __mmask16 right = static_cast<__mmask16>(moving & ~left);
  const __m512i step =
      _mm512_maskz_srli_epi32(all, _mm512_and_si512(next, _mm512_set1_epi32(static_cast<int>(tree.step_mask))), 2);
  const __mmask16 rests = static_cast<__mmask16>(_mm512_mask_test_epi32_mask(left, next, _mm512_set1_epi32(2)) |
                                                 _mm512_mask_test_epi32_mask(right, next, one));
  lanes.at = _mm512_mask_add_epi32(lanes.at, left, lanes.at, one);
  lanes.at = _mm512_mask_add_epi32(lanes.at, right, lanes.at, step);
  lanes.leaf = _mm512_mask_add_epi32(lanes.leaf, right, lanes.leaf, step);
  lanes.moving = static_cast<__mmask16>(moving & ~rests);
}

// Four vectors: one moves while the others wait for memory. From time to time finished rows are written out and
// replaced; doing so at every step costs more than the idle lanes.
template <bool categories>
void walk_rows(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
               std::uint32_t* leaf) {
  constexpr std::size_t n_vectors = 4, n_steps = 3;
  const __m512i zero = _mm512_setzero_si512(), width = _mm512_set1_epi32(static_cast<int>(tree.width));
  const __mmask16 add_splits = in_preorder ? all : 0;
  Walks lanes[n_vectors];
  __m512i member[n_vectors];
  for (std::size_t v = 0; v < n_vectors; ++v) {
    lanes[v] = {zero, zero, zero, 0};
    member[v] = zero;
  }
  std::size_t next = 0, n_done = 0;
  while (n_done < n) {
    __mmask16 started[n_vectors];
    for (std::size_t v = 0; v < n_vectors; ++v) {
      Walks& l = lanes[v];
      auto seats = static_cast<__mmask16>(~l.moving);
      auto n_seats = static_cast<std::size_t>(__builtin_popcount(seats));
      if (n - next < n_seats) {
        seats = static_cast<__mmask16>(_pdep_u32((1u << (n - next)) - 1, seats));
        n_seats = n - next;
      }
      member[v] = _mm512_mask_expandloadu_epi32(member[v], seats, members + next);
      next += n_seats;
      l.codes = _mm512_mask_mullo_epi32(l.codes, seats, member[v], width);
      l.at = _mm512_mask_mov_epi32(l.at, seats, zero);
      l.leaf = _mm512_mask_mov_epi32(l.leaf, seats, zero);
      l.moving = started[v] = static_cast<__mmask16>(l.moving | seats);
    }
    for (std::size_t s = 0; s < n_steps; ++s)
      for (std::size_t v = 0; v < n_vectors; ++v) advance<categories>(tree, lanes[v]);
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const auto done = static_cast<__mmask16>(started[v] & ~lanes[v].moving);
      const __m512i where = _mm512_mask_add_epi32(lanes[v].leaf, add_splits, lanes[v].leaf, lanes[v].at);
      _mm512_storeu_si512(row + n_done, _mm512_maskz_compress_epi32(done, member[v]));
      _mm512_storeu_si512(leaf + n_done, _mm512_maskz_compress_epi32(done, where));
      n_done += static_cast<std::size_t>(__builtin_popcount(done));
    }
  }
}

void walk(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
          std::uint32_t* leaf) {
  (tree.has_categories ? walk_rows<true> : walk_rows<false>)(tree, members, n, in_preorder, row, leaf);
}

// As many trees as can be in flight for one row.
template <bool categories>
void walk_all(const CodedTree& tree, std::size_t n_trees, const std::uint32_t* first, std::uint32_t* leaf) {
  constexpr std::size_t n_vectors = 8;
  for (std::size_t begin = 0; begin < n_trees; begin += 16 * n_vectors) {
    Walks lanes[n_vectors];
    __mmask16 present[n_vectors];
    const std::size_t n = n_trees - begin, n_used = n >= 16 * n_vectors ? n_vectors : (n + 15) / 16;
    for (std::size_t v = 0; v < n_used; ++v) {
      const std::size_t t = begin + 16 * v, left = n_trees - t;
      present[v] = left >= 16 ? all : static_cast<__mmask16>((1u << left) - 1);
      lanes[v] = {_mm512_setzero_si512(), _mm512_maskz_loadu_epi32(present[v], first + t),
                  _mm512_maskz_loadu_epi32(present[v], leaf + t), present[v]};
    }
    std::uint32_t moving = 1;
    while (moving != 0) {
      moving = 0;
      for (std::size_t v = 0; v < n_used; ++v) {
        if (lanes[v].moving == 0) continue;
        advance<categories>(tree, lanes[v]);
        moving |= lanes[v].moving;
      }
    }
    for (std::size_t v = 0; v < n_used; ++v) _mm512_mask_storeu_epi32(leaf + begin + 16 * v, present[v], lanes[v].leaf);
  }
}

void walk_trees(const CodedTree& tree, std::size_t n_trees, const std::uint32_t* first, std::uint32_t* leaf) {
  (tree.has_categories ? walk_all<true> : walk_all<false>)(tree, n_trees, first, leaf);
}

inline std::uint32_t count_below(const Sixteen& sixteen, double x) {
  const __m512d value = _mm512_set1_pd(x);
  const __mmask8 low = _mm512_cmp_pd_mask(_mm512_loadu_pd(sixteen.threshold), value, _CMP_LT_OQ);
  const __mmask8 high = _mm512_cmp_pd_mask(_mm512_loadu_pd(sixteen.threshold + 8), value, _CMP_LT_OQ);
  return static_cast<std::uint32_t>(__builtin_popcount(low | static_cast<std::uint32_t>(high) << 8));
}

// From a group of the level above to a position in this level, for n values.
inline void descend(const Sixteen* level, const double* x, std::size_t n, std::uint32_t* rank) {
  for (std::size_t i = 0; i < n; ++i) rank[i] = rank[i] * 16 + count_below(level[rank[i]], x[i]);
}
