// Bodies of the kernels, included by one translation unit per instruction set, inside that unit's own namespace.
// Everything has internal linkage: a function compiled for wide vectors must not be merged with its plain namesake.

static void subtract(Packed* large, const Packed* small, std::size_t n) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) large[i] -= small[i];
}

// prefix[i] = before + cells[0] + … + cells[i]
static void add_up(const Packed* cells, std::size_t n, Packed before, Packed* prefix) {
  std::size_t i = 0;
#if defined(__AVX512F__)
  const __m512i zero = _mm512_setzero_si512(), last = _mm512_set1_epi64(7);
  __m512i sum = _mm512_set1_epi64(static_cast<long long>(before));
  for (; i + 8 <= n; i += 8) {
    __m512i v = _mm512_loadu_si512(cells + i);
    v = _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 7));
    v = _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 6));
    v = _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 4));
    v = _mm512_add_epi64(v, sum);
    _mm512_storeu_si512(prefix + i, v);
    sum = _mm512_maskz_permutexvar_epi64(0xff, last, v);
  }
  if (i > 0) before = prefix[i - 1];
#endif
  for (; i < n; ++i) prefix[i] = before += cells[i];
}

static float largest_of(const float* scores, std::size_t n) {
  typedef float Lanes __attribute__((vector_size(64), aligned(4)));
  float largest = -1;
  std::size_t i = 0;
  if (n >= 32) {
    Lanes best = *reinterpret_cast<const Lanes*>(scores);
    for (i = 16; i + 16 <= n; i += 16) {
      const Lanes s = *reinterpret_cast<const Lanes*>(scores + i);
      best = s > best ? s : best;
    }
    for (int lane = 0; lane < 16; ++lane) largest = best[lane] > largest ? best[lane] : largest;
  }
  for (; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;
  return largest;
}

// The first cut whose hessian on the left is at least a limit. Written so that no branch depends on the sums.
static std::size_t first_cut(const Packed* prefix, std::size_t n, std::uint32_t limit) {
  const Packed* low = prefix;
  while (n > 1) {
    const std::size_t half = n / 2;
    low += static_cast<std::uint32_t>(low[half - 1]) < limit ? half : 0;
    n -= half;
  }
  return static_cast<std::size_t>(low - prefix) + (n == 1 && static_cast<std::uint32_t>(*low) < limit);
}

// Is any of n <= 16 scores at least `enough`? Up to 16 are read.
static bool any_reaches(const float* scores, std::size_t n, float enough) {
#if defined(__AVX512F__)
  const auto valid = static_cast<__mmask16>((1u << n) - 1);
  return _mm512_mask_cmp_ps_mask(valid, _mm512_maskz_loadu_ps(valid, scores), _mm512_set1_ps(enough), _CMP_GE_OQ) != 0;
#else
  bool any = false;
  for (std::size_t i = 0; i < n; ++i) any |= scores[i] >= enough;
  return any;
#endif
}

static double score_of(Packed left_sums, const CutQuery& q) {
  const double g_left = static_cast<double>(gradient_of(left_sums)),
               h_left = static_cast<double>(hessian_of(left_sums));
  const double g_right = q.gradient - g_left, left = h_left + q.lambda, right = q.hessian - h_left + q.lambda;
  return (g_left * g_left * right + g_right * g_right * left) / (left * right);
}

// Scores in single precision say which cuts may be the best; these are then compared in double precision. Sums are whole
// numbers, so a score of floats is off by less than a millionth of it.
static CutFound best_cut(const Packed* cells, std::size_t n_cuts, Packed before, const CutQuery& q, Packed* prefix,
                         float* scores) {
  CutFound found;
  add_up(cells, n_cuts, before, prefix);
  // Hessians never fall along the cuts, so those with enough on both sides are neighbours.
  const double needed = __builtin_ceil(q.min_hessian);
  if (!(2 * needed <= q.hessian)) return found;
  const auto least = static_cast<std::uint32_t>(needed), most = static_cast<std::uint32_t>(q.hessian - needed);
  const std::size_t begin = first_cut(prefix, n_cuts, least), end = first_cut(prefix, n_cuts, most + 1);
  if (begin >= end) return found;
  const auto g = static_cast<std::int32_t>(q.gradient), h = static_cast<std::int32_t>(q.hessian);
  const auto lambda = static_cast<float>(q.lambda);
#pragma GCC ivdep
  for (std::size_t i = begin; i < end; ++i) {
    const auto g_left = static_cast<std::int32_t>(prefix[i] >> 32), h_left = static_cast<std::int32_t>(prefix[i]);
    const auto gl = static_cast<float>(g_left), gr = static_cast<float>(g - g_left);
    const float left = static_cast<float>(h_left) + lambda, right = static_cast<float>(h - h_left) + lambda;
    scores[i] = (gl * gl * right + gr * gr * left) / (left * right);
  }
  constexpr float margin = 1 - 0x1p-18f;
  const float enough = largest_of(scores + begin, end - begin) * margin;
  for (std::size_t block = begin; block < end; block += 16) {
    const std::size_t stop = block + 16 < end ? block + 16 : end;
    if (!any_reaches(scores + block, stop - block, enough)) continue;
    for (std::size_t i = block; i < stop; ++i) {
      if (!(scores[i] >= enough)) continue;
      const double score = score_of(prefix[i], q);
      if (!(score > found.score)) continue;
      found.score = score;
      found.cut = static_cast<std::uint32_t>(i);
      found.left = prefix[i];
    }
  }
  return found;
}

static std::size_t part(Row* rows, std::size_t n, const std::uint8_t* codes, std::uint32_t cut, std::uint32_t also_left,
                        Row* spare) {
  std::size_t n_left = 0, n_right = 0, i = 0;
#if defined(__AVX512F__)
  const __m512i low = _mm512_set1_epi32(0xff), last = _mm512_set1_epi32(static_cast<int>(cut)),
                other = _mm512_set1_epi32(static_cast<int>(also_left));
  for (; i + 16 <= n; i += 16) {
    const __m512i r = _mm512_loadu_si512(rows + i);
    const __m512i gathered = _mm512_mask_i32gather_epi32(low, 0xffff, r, codes, 1);
    const __m512i code = _mm512_and_si512(gathered, low);
    const __mmask16 left = _mm512_cmple_epu32_mask(code, last) | _mm512_cmpeq_epu32_mask(code, other);
    _mm512_storeu_si512(rows + n_left, _mm512_maskz_compress_epi32(left, r));
    _mm512_storeu_si512(spare + n_right, _mm512_maskz_compress_epi32(static_cast<__mmask16>(~left), r));
    const auto went = static_cast<std::size_t>(__builtin_popcount(left));
    n_left += went;
    n_right += 16 - went;
  }
#endif
  for (; i < n; ++i) {
    const Row r = rows[i];
    const std::uint32_t code = codes[r];
    const bool left = (code <= cut) | (code == also_left);
    rows[n_left] = r;
    spare[n_right] = r;
    n_left += left;
    n_right += !left;
  }
  __builtin_memcpy(rows + n_left, spare, n_right * sizeof(Row));
  return n_left;
}

static void quantise(const Pair* pairs, std::size_t first, std::size_t n, float gradient_scale, float hessian_scale,
                     std::uint32_t key, Packed* out) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t z = static_cast<std::uint32_t>(first + i) * 0x9e3779b1u + key;
    z = (z ^ (z >> 16)) * 0x7feb352du;
    z = (z ^ (z >> 15)) * 0x846ca68bu;
    z ^= z >> 16;
    const float up_gradient = static_cast<float>(static_cast<std::int32_t>(z & 0xffff)) * 0x1p-16f;
    const float up_hessian = static_cast<float>(static_cast<std::int32_t>(z >> 16)) * 0x1p-16f;
    const float g = pairs[i].gradient * gradient_scale + up_gradient;
    const float h = pairs[i].hessian * hessian_scale + up_hessian;
    std::int32_t whole = static_cast<std::int32_t>(g);
    whole -= static_cast<float>(whole) > g;
    out[i] = (static_cast<Packed>(static_cast<std::uint32_t>(whole)) << 32) +
             static_cast<Packed>(static_cast<std::int64_t>(h));
  }
}

static WholeSums sum_pairs(const Pair* pairs, const Row* rows, std::size_t n, double gradient_scale,
                           double hessian_scale) {
  constexpr std::size_t block = 128, ahead = 16;
  Pair near[block];
  WholeSums sums;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    for (std::size_t i = 0; i < m; ++i) {
      __builtin_prefetch(pairs + rows[begin + i + ahead < n ? begin + i + ahead : n - 1]);
      near[i] = pairs[rows[begin + i]];
    }
    std::int64_t g = 0, h = 0;
    for (std::size_t i = 0; i < m; ++i) {
      g += static_cast<std::int64_t>(static_cast<double>(near[i].gradient) * gradient_scale);
      h += static_cast<std::int64_t>(static_cast<double>(near[i].hessian) * hessian_scale);
    }
    sums.gradient += g;
    sums.hessian += h;
  }
  return sums;
}

static constexpr std::size_t weights_block = 256;

// Rows that count once have weights of one: without a factor the compiler keeps the loop to one row at a time.
static const double* weights_or_ones(const double* weight, std::size_t begin) {
  struct Ones {
    double values[weights_block];
    constexpr Ones() : values() {
      for (double& v : values) v = 1.0;
    }
  };
  static constexpr Ones ones;
  return weight == nullptr ? ones.values : weight + begin;
}

template <class Loss>
static void fill_gradients(const double* target, const double* score, const double* weight, std::size_t n,
                           LossParams params, Pair* out) {
  const double a = params.a;
  for (std::size_t begin = 0; begin < n; begin += weights_block) {
    const std::size_t end = n - begin < weights_block ? n : begin + weights_block;
    const double* w = weights_or_ones(weight, begin);
#pragma GCC ivdep
    for (std::size_t i = begin; i < end; ++i) {
      const GradientPair p = Loss::at(target[i], score[i], a);
      out[i] = {static_cast<float>(p.gradient * w[i - begin]), static_cast<float>(p.hessian * w[i - begin])};
    }
  }
}

template <class Loss>
static void fill_values(const double* target, const double* score, std::size_t n, LossParams params, double* out) {
  const double a = params.a;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) out[i] = Loss::value(target[i], score[i], a);
}

static void softmax(const double* const* scores, std::size_t n_classes, std::size_t n, double* const* shares) {
  constexpr std::size_t block = 256;
  double most[block], sum[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    for (std::size_t i = 0; i < m; ++i) most[i] = scores[0][begin + i];
    for (std::size_t k = 1; k < n_classes; ++k)
      for (std::size_t i = 0; i < m; ++i) most[i] = scores[k][begin + i] > most[i] ? scores[k][begin + i] : most[i];
    for (std::size_t i = 0; i < m; ++i) sum[i] = 0;
    for (std::size_t k = 0; k < n_classes; ++k) {
      const double* score = scores[k] + begin;
      double* share = shares[k] + begin;
#pragma GCC ivdep
      for (std::size_t i = 0; i < m; ++i) {
        share[i] = exp_ieee(score[i] - most[i]);
        sum[i] += share[i];
      }
    }
    for (std::size_t k = 0; k < n_classes; ++k) {
      double* share = shares[k] + begin;
#pragma GCC ivdep
      for (std::size_t i = 0; i < m; ++i) share[i] /= sum[i];
    }
  }
}

static void softmax_loss(const double* const* scores, std::size_t n_classes, const double* target, std::size_t n,
                         double* out) {
  constexpr std::size_t block = 256;
  double most[block], sum[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    for (std::size_t i = 0; i < m; ++i) most[i] = scores[0][begin + i];
    for (std::size_t k = 1; k < n_classes; ++k)
      for (std::size_t i = 0; i < m; ++i) most[i] = scores[k][begin + i] > most[i] ? scores[k][begin + i] : most[i];
    for (std::size_t i = 0; i < m; ++i) sum[i] = 0;
    for (std::size_t k = 0; k < n_classes; ++k) {
      const double* score = scores[k] + begin;
#pragma GCC ivdep
      for (std::size_t i = 0; i < m; ++i) sum[i] += exp_ieee(score[i] - most[i]);
    }
#pragma GCC ivdep
    for (std::size_t i = 0; i < m; ++i) sum[i] = most[i] + log_ieee(sum[i]);
    for (std::size_t i = 0; i < m; ++i)
      out[begin + i] = sum[i] - scores[static_cast<std::size_t>(target[begin + i])][begin + i];
  }
}

static void class_gradients(const double* shares, const double* target, const double* weight, std::size_t n,
                            std::uint32_t k, double factor, Pair* out) {
  const double wanted = k;
  for (std::size_t begin = 0; begin < n; begin += weights_block) {
    const std::size_t end = n - begin < weights_block ? n : begin + weights_block;
    const double* w = weights_or_ones(weight, begin);
#pragma GCC ivdep
    for (std::size_t i = begin; i < end; ++i) {
      const double p = shares[i], hit = target[i] == wanted ? 1.0 : 0.0;
      out[i] = {static_cast<float>((p - hit) * w[i - begin]),
                static_cast<float>(factor * p * (1.0 - p) * w[i - begin])};
    }
  }
}

const BoostKernels boost_kernels{subtract,
                                 best_cut,
                                 part,
                                 quantise,
                                 sum_pairs,
                                 {fill_gradients<SquaredLoss>, fill_values<SquaredLoss>},
                                 {fill_gradients<AbsoluteLoss>, fill_values<AbsoluteLoss>},
                                 {fill_gradients<HuberLoss>, fill_values<HuberLoss>},
                                 {fill_gradients<QuantileLoss>, fill_values<QuantileLoss>},
                                 {fill_gradients<LogisticLoss>, fill_values<LogisticLoss>},
                                 {fill_gradients<ExponentialLoss>, fill_values<ExponentialLoss>},
                                 {fill_gradients<PoissonLoss>, fill_values<PoissonLoss>},
                                 {fill_gradients<GammaLoss>, fill_values<GammaLoss>},
                                 {fill_gradients<TweedieLoss>, fill_values<TweedieLoss>},
                                 softmax,
                                 class_gradients,
                                 softmax_loss};
