// The best cut of a column, included by kernels_body.cpp.

double score_of(Packed left_sums, const CutQuery& q) {
  const double g_left = static_cast<double>(gradient_of(left_sums)),
               h_left = static_cast<double>(hessian_of(left_sums));
  const double g_right = q.gradient - g_left, left = h_left + q.lambda, right = q.hessian - h_left + q.lambda;
  return (g_left * g_left * right + g_right * g_right * left) / (left * right);
}

void offer_cut(std::size_t cut, const Packed* prefix, const CutQuery& q, CutFound& found) {
  const double score = without_rounding(score_of(prefix[cut], q));
  if (!(score > found.score)) return;
  found.score = score;
  found.cut = static_cast<std::uint32_t>(cut);
  found.left = prefix[cut];
}

bool may_separate_one(const Packed* cells, std::size_t n, const CutQuery& q) {
  const double floor = q.floor * (1 - 2e-9), most = q.hessian - q.min_hessian;
  std::int64_t any = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto g = static_cast<double>(static_cast<std::int64_t>(cells[i]) >> 32),
               h = static_cast<double>(static_cast<std::int64_t>(cells[i] & 0xffffffff));
    const double rest = q.gradient - g, here = h + q.lambda, there = q.hessian - h + q.lambda;
    const bool is_enough = g * g * there + rest * rest * here >= floor * here * there;
    any |= static_cast<std::int64_t>(is_enough & (h >= q.min_hessian) & (h <= most));
  }
  return any != 0;
}

// Rough scores select the cuts that may be the best; these are compared in double precision. The best cut does not
// depend on the roughness as long as the error stays within the margin.
// Let l and r be the fractions of S (the hessian plus twice lambda) on the two sides and d = g_left - l g. The score of
// a cut is (g^2 + d^2 / (l r)) / S. The rough score is d^2 / (l r) in single precision, half the work. The error of d,
// which may be a small difference, is below 8 2^-24 sqrt(l S score) for any order of the additions, hence that of the
// gain d^2 / (l r S) is below 2^-20 sqrt(score gain / r), or 2^-41 score / r if the gain is smaller still.
struct RoughCuts {
  explicit RoughCuts(const CutQuery& q, double needed)
      : total(q.hessian + 2 * q.lambda),
        alone(q.gradient * q.gradient / total),
        most_uneven(total / (needed + q.lambda)) {}

  // The rough score a cut must reach to be examined: nearly the largest, and nearly the floor.
  float enough(float largest, double floor) const {
    const double best = static_cast<double>(largest) / total, wanted = floor - alone;
    const double gain = best > wanted ? best : wanted, score = alone + gain;
    const double error = 0x1p-19 * __builtin_sqrt(score * gain * most_uneven) + 0x1p-39 * score * most_uneven;
    return static_cast<float>((gain * (1 - 0x1p-11) - error) * total);
  }

  double total, alone, most_uneven;
};

#if defined(__AVX512F__)

__m512i add_up_lanes(__m512i v) {
  const __m512i zero = _mm512_setzero_si512();
  v = _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 7));
  v = _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 6));
  return _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 4));
}

// Which of 16 positions from `at` on lie in [first, end).
__mmask16 places_within(std::size_t at, std::size_t first, std::size_t end) {
  const std::size_t low = first > at ? first - at : 0, high = end > at ? end - at : 0;
  const std::uint32_t below_high = high >= 16 ? 0xffffu : (1u << high) - 1;
  return static_cast<__mmask16>(low >= 16 ? 0u : below_high & (0xffffu << low));
}

CutFound best_cut(const Packed* cells, std::size_t n_cuts, Packed before, const CutQuery& q, Packed* prefix,
                  float* scores) {
  CutFound found;
  const double needed = __builtin_ceil(q.min_hessian);
  if (!(2 * needed <= q.hessian)) return found;
  const RoughCuts rough(q, needed > 1 ? needed : 1);
  const __m512i least = _mm512_set1_epi32(static_cast<int>(needed)),
                most = _mm512_set1_epi32(static_cast<int>(q.hessian - needed)), last = _mm512_set1_epi64(7),
                h = _mm512_set1_epi32(static_cast<int>(q.hessian)),
                low = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                high = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const __m512 lambda = _mm512_set1_ps(static_cast<float>(q.lambda / rough.total)), none = _mm512_set1_ps(-1),
               unit = _mm512_set1_ps(static_cast<float>(1 / rough.total)),
               g = _mm512_set1_ps(static_cast<float>(q.gradient));
  const std::size_t end_cut = q.end_cut < n_cuts ? q.end_cut : n_cuts;
  __m512i sum = _mm512_set1_epi64(static_cast<long long>(before));
  __m512 largest = none;
  const auto score_cuts = [&](std::size_t i, __mmask16 there, __mmask16 allowed) __attribute__((always_inline)) {
    const auto there_a = static_cast<__mmask8>(there), there_b = static_cast<__mmask8>(there >> 8);
    __m512i a = add_up_lanes(_mm512_maskz_loadu_epi64(there_a, cells + i));
    __m512i b = add_up_lanes(_mm512_maskz_loadu_epi64(there_b, cells + i + 8));
    const __m512i sum_a = _mm512_maskz_permutexvar_epi64(0xff, last, a),
                  sum_b = _mm512_maskz_permutexvar_epi64(0xff, last, b);
    a = _mm512_add_epi64(a, sum);
    b = _mm512_add_epi64(b, _mm512_add_epi64(sum, sum_a));
    sum = _mm512_add_epi64(sum, _mm512_add_epi64(sum_a, sum_b));
    _mm512_mask_storeu_epi64(prefix + i, there_a, a);
    _mm512_mask_storeu_epi64(prefix + i + 8, there_b, b);
    const __m512i h_left = _mm512_permutex2var_epi32(a, low, b), g_left = _mm512_permutex2var_epi32(a, high, b);
    __mmask16 valid = _mm512_mask_cmpge_epu32_mask(allowed, h_left, least);
    valid = _mm512_mask_cmple_epu32_mask(valid, h_left, most);
    const __m512i h_right = _mm512_sub_epi32(h, h_left);
    const __m512 left = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, h_left), unit, lambda),
                 right = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, h_right), unit, lambda);
    const __m512 d = _mm512_fnmadd_ps(g, left, _mm512_maskz_cvtepi32_ps(0xffff, g_left));
    const __m512 score = _mm512_mul_ps(_mm512_mul_ps(d, d), _mm512_maskz_rcp14_ps(0xffff, _mm512_mul_ps(left, right)));
    const __m512 valid_scores = _mm512_mask_mov_ps(none, valid, score);
    _mm512_storeu_ps(scores + i, valid_scores);
    largest = _mm512_maskz_max_ps(0xffff, largest, valid_scores);
  };
  std::size_t i = 0;
  if (q.first_cut == 0 && end_cut == n_cuts)
    for (; i + 16 <= n_cuts; i += 16) score_cuts(i, 0xffff, 0xffff);
  for (; i < n_cuts; i += 16) score_cuts(i, places_within(i, 0, n_cuts), places_within(i, q.first_cut, end_cut));
  float by_lane[16], best = -1;
  _mm512_storeu_ps(by_lane, largest);
  for (const float s : by_lane) best = s > best ? s : best;
  if (best < 0) return found;
  const float needed_score = rough.enough(best, q.floor);
  if (best < needed_score) return found;
  const __m512 enough = _mm512_set1_ps(needed_score);
  for (i = 0; i < n_cuts; i += 16) {
    auto near = static_cast<std::uint32_t>(_mm512_cmp_ps_mask(_mm512_loadu_ps(scores + i), enough, _CMP_GE_OQ));
    for (; near != 0; near &= near - 1) {
      const std::size_t cut = i + static_cast<std::size_t>(__builtin_ctz(near));
      if (scores[cut] >= 0) offer_cut(cut, prefix, q, found);
    }
  }
  return found;
}

#else

struct CutRange {
  std::size_t begin, end;
};

// Running sums of cells, two at a time to shorten the dependency chain. Hessians never decrease along the cuts, so the
// cuts with enough hessian on both sides are contiguous; their range is returned and nothing beyond it is summed.
CutRange add_up(const Packed* cells, std::size_t n, Packed before, std::uint32_t least, std::uint32_t most,
                Packed* prefix) {
  const auto hessian = [](Packed sum) __attribute__((always_inline)) { return static_cast<std::uint32_t>(sum); };
  std::size_t i = 0, n_below = 0;
  for (; i + 4 <= n && hessian(before) <= most; i += 4) {
    const Packed a = cells[i], b = cells[i + 1], c = cells[i + 2], d = cells[i + 3];
    const Packed first = before + a, second = before + (a + b), third = second + c;
    before = second + (c + d);
    prefix[i] = first;
    prefix[i + 1] = second;
    prefix[i + 2] = third;
    prefix[i + 3] = before;
    n_below += hessian(before) < least ? 4 : 0;
  }
  for (; i < n && hessian(before) <= most; ++i) prefix[i] = before += cells[i];
  CutRange range{n_below, i};
  while (range.begin < i && hessian(prefix[range.begin]) < least) ++range.begin;
  while (range.end > range.begin && hessian(prefix[range.end - 1]) > most) --range.end;
  return range;
}

// As many cuts at a time as a register holds: GCC stores larger groups in memory.
constexpr std::size_t n_scored = register_bytes / sizeof(float);
using Scores = Lanes<float, n_scored>;

struct RoughTerms {
  RoughTerms(const RoughCuts& rough, const CutQuery& q)
      : hessian(every<n_scored>(static_cast<std::int32_t>(q.hessian))),
        gradient(every<n_scored>(static_cast<float>(q.gradient))),
        unit(every<n_scored>(static_cast<float>(1 / rough.total))),
        lambda(every<n_scored>(static_cast<float>(q.lambda / rough.total))) {}

  // `is_even`: no side is so small that its fraction must be computed separately from 1 minus the other.
  template <bool is_even>
  SPINNEY_INLINE Scores scores(const Packed* prefix) const {
    const auto [h_left, g_left] = halves_of(load<n_scored>(prefix));
    const Scores left = rough_multiply_add(convert<float>(h_left), unit, lambda),
                 d = rough_multiply_subtract(gradient, left, convert<float>(g_left));
    if constexpr (is_even) return rough_ratio(d * d, rough_multiply_subtract(left, left, left));
    const Scores right = rough_multiply_add(convert<float>(hessian - h_left), unit, lambda);
    return rough_ratio(d * d, left * right);
  }

  template <bool is_even>
  SPINNEY_INLINE float score(const Packed* prefix, CutRange range, float* scores_out) const {
    Scores largest = every<n_scored>(-1.0f);
    for (std::size_t i = range.begin; i < range.end; i += n_scored) {
      const Scores s = scores<is_even>(prefix + i);
      store(scores_out + i, s);
      largest = larger_number(largest, s);
    }
    return largest_of(largest);
  }

  Lanes<std::int32_t, n_scored> hessian;
  Scores gradient, unit, lambda;
};

CutFound best_cut(const Packed* cells, std::size_t n_cuts, Packed before, const CutQuery& q, Packed* prefix,
                  float* scores) {
  CutFound found;
  const double needed = __builtin_ceil(q.min_hessian);
  if (!(2 * needed <= q.hessian)) return found;
  CutRange range = add_up(cells, n_cuts, before, static_cast<std::uint32_t>(needed),
                          static_cast<std::uint32_t>(q.hessian - needed), prefix);
  range.begin = range.begin < q.first_cut ? q.first_cut : range.begin;
  range.end = range.end > q.end_cut ? q.end_cut : range.end;
  if (range.begin >= range.end) return found;
  for (std::size_t i = range.end; i + 1 < range.end + n_scored; ++i)
    prefix[i] = prefix[range.end - 1];  // repeats the last sum
  const RoughCuts rough(q, needed > 1 ? needed : 1);
  const RoughTerms terms(rough, q);
  const float best =
      rough.most_uneven <= 256 ? terms.score<true>(prefix, range, scores) : terms.score<false>(prefix, range, scores);
  const float needed_score = rough.enough(best, q.floor);
  if (best < needed_score) return found;
  const Scores enough = every<n_scored>(needed_score);
  for (std::size_t i = range.begin; i < range.end; i += n_scored) {
    if (!any_of(enough <= load<n_scored>(scores + i))) continue;
    const std::size_t stop = i + n_scored < range.end ? i + n_scored : range.end;
    for (std::size_t cut = i; cut < stop; ++cut)
      if (scores[cut] >= needed_score) offer_cut(cut, prefix, q, found);
  }
  return found;
}

#endif
