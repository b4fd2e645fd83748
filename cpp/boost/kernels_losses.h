// Loss kernels, included by kernels_body.cpp.

constexpr std::size_t weights_block = 256;

// Unweighted rows use weights of 1: without a factor the compiler does not vectorise the loop.
const double* weights_or_ones(const double* weight, std::size_t begin) {
  struct Ones {
    double values[weights_block];
    constexpr Ones() : values() {
      for (double& v : values) v = 1.0;
    }
  };
  static constexpr Ones ones;
  return weight == nullptr ? ones.values : weight + begin;
}

template <class Loss, bool with_losses>
void fill_terms(const double* target, const double* score, const double* weight, std::size_t n, LossParams params,
                Pair* out, [[maybe_unused]] double* losses) {
  const double a = params.a;
  for (std::size_t begin = 0; begin < n; begin += weights_block) {
    const std::size_t end = n - begin < weights_block ? n : begin + weights_block;
    const double* w = weights_or_ones(weight, begin);
    SPINNEY_IVDEP
    for (std::size_t i = begin; i < end; ++i) {
      const GradientPair p = Loss::at(target[i], score[i], a);
      out[i] = {static_cast<float>(p.gradient * w[i - begin]), static_cast<float>(p.hessian * w[i - begin])};
      if constexpr (with_losses) losses[i] = Loss::value(target[i], score[i], a);
    }
  }
}

// One logarithm for four rows.
template <class Loss>
void fill_gradients_and_sums(const double* target, const double* score, std::size_t n, Pair* out, double* losses) {
  constexpr std::size_t block = 256, quarter = block / 4;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block, m_sums = m < quarter ? m : quarter;
    double plain[block], factor[block];
    for (std::size_t i = m; i < block; ++i) {
      plain[i] = 0;
      factor[i] = 1;
    }
    const double *y = target + begin, *f = score + begin;
    SPINNEY_IVDEP
    for (std::size_t i = 0; i < m; ++i) {
      const GradientPair p = Loss::at(y[i], f[i], 0);
      out[begin + i] = {static_cast<float>(p.gradient), static_cast<float>(p.hessian)};
      plain[i] = Loss::plain(y[i], f[i]);
      factor[i] = Loss::factor(f[i]);
    }
    for (std::size_t i = 0; i < m_sums; ++i) {
      const std::size_t b = i + quarter, c = b + quarter, d = c + quarter;
      losses[begin + i] =
          (plain[i] + plain[b]) + (plain[c] + plain[d]) + log_ieee((factor[i] * factor[b]) * (factor[c] * factor[d]));
    }
    for (std::size_t i = m_sums; i < m; ++i) losses[begin + i] = 0;
  }
}

template <class Loss>
void fill_gradients(const double* target, const double* score, const double* weight, std::size_t n, LossParams params,
                    Pair* out, double* losses) {
  if constexpr (requires { Loss::factor(0.0); })
    if (losses != nullptr && weight == nullptr) return fill_gradients_and_sums<Loss>(target, score, n, out, losses);
  if (losses == nullptr) return fill_terms<Loss, false>(target, score, weight, n, params, out, losses);
  fill_terms<Loss, true>(target, score, weight, n, params, out, losses);
}

template <class Loss>
void fill_values(const double* target, const double* score, std::size_t n, LossParams params, double* out) {
  const double a = params.a;
  SPINNEY_IVDEP
  for (std::size_t i = 0; i < n; ++i) out[i] = Loss::value(target[i], score[i], a);
}

// The largest score of each of m rows.
void find_largest(const double* const* scores, std::size_t n_classes, std::size_t begin, std::size_t m, double* most) {
  for (std::size_t i = 0; i < m; ++i) most[i] = scores[0][begin + i];
  for (std::size_t k = 1; k < n_classes; ++k)
    for (std::size_t i = 0; i < m; ++i) most[i] = scores[k][begin + i] > most[i] ? scores[k][begin + i] : most[i];
}

// e^x of eight numbers that are at most 0, as exp_ieee computes it. Its steps depend on each other, so a loop over
// single registers would leave the processor idle most of the time.
SPINNEY_INLINE Lanes<double, 8> exp_of_eight(const Lanes<double, 8>& number) {
  constexpr double terms[] = {1.0 / 479001600.0,
                              1.0 / 39916800.0,
                              1.0 / 3628800.0,
                              1.0 / 362880.0,
                              1.0 / 40320.0,
                              1.0 / 5040.0,
                              1.0 / 720.0,
                              1.0 / 120.0,
                              1.0 / 24.0,
                              1.0 / 6.0,
                              0.5,
                              1.0,
                              1.0};
  const auto shift = every<8>(0x1.8p52), x = larger(number, every<8>(-700.0));
  const auto shifted = x * every<8>(bits_per_nat) + shift, k = shifted - shift;
  const auto r = (x - k * every<8>(ln2_high)) - k * every<8>(ln2_low);
  auto p = every<8>(1.0 / 6227020800.0);
  for (const double term : terms) p = p * r + every<8>(term);
  return each<Lanes<double, 8>>(
      [](auto power, auto exponent) __attribute__((always_inline)) {
        typedef std::int64_t Bits __attribute__((vector_size(sizeof power)));
        return (Bits)power + ((Bits)exponent << 52);
      },
      p, shifted);
}

// Adds e^(score - most) of m rows to their sums, and stores the exponentials if requested.
template <bool stores_powers>
void add_powers(const double* score, const double* most, std::size_t m, double* sum, [[maybe_unused]] double* power) {
  std::size_t i = 0;
  for (; i + 8 <= m; i += 8) {
    const auto found = exp_of_eight(load<8>(score + i) - load<8>(most + i));
    if constexpr (stores_powers) store(power + i, found);
    store(sum + i, load<8>(sum + i) + found);
  }
  for (; i < m; ++i) {
    const double found = exp_ieee(score[i] - most[i]);
    if constexpr (stores_powers) power[i] = found;
    sum[i] += found;
  }
}

void softmax(const double* const* scores, std::size_t n_classes, std::size_t n, double* const* proba,
             double* log_sums) {
  constexpr std::size_t block = 256;
  double most[block], sum[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    find_largest(scores, n_classes, begin, m, most);
    for (std::size_t i = 0; i < m; ++i) sum[i] = 0;
    for (std::size_t k = 0; k < n_classes; ++k) add_powers<true>(scores[k] + begin, most, m, sum, proba[k] + begin);
    for (std::size_t k = 0; k < n_classes; ++k) {
      double* p_class = proba[k] + begin;
      SPINNEY_IVDEP
      for (std::size_t i = 0; i < m; ++i) p_class[i] /= sum[i];
    }
    if (log_sums == nullptr) continue;
    SPINNEY_IVDEP
    for (std::size_t i = 0; i < m; ++i) log_sums[begin + i] = most[i] + log_ieee(sum[i]);
  }
}

void softmax_loss(const double* const* scores, std::size_t n_classes, const double* target, std::size_t n,
                  double* out) {
  constexpr std::size_t block = 256;
  double most[block], sum[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    find_largest(scores, n_classes, begin, m, most);
    for (std::size_t i = 0; i < m; ++i) sum[i] = 0;
    for (std::size_t k = 0; k < n_classes; ++k) add_powers<false>(scores[k] + begin, most, m, sum, nullptr);
    SPINNEY_IVDEP
    for (std::size_t i = 0; i < m; ++i) sum[i] = most[i] + log_ieee(sum[i]);
    for (std::size_t i = 0; i < m; ++i)
      out[begin + i] = sum[i] - scores[static_cast<std::size_t>(target[begin + i])][begin + i];
  }
}

void class_gradients(const double* proba, const double* target, const double* weight, std::size_t n, std::uint32_t k,
                     double factor, Pair* out) {
  const double wanted = k;
  for (std::size_t begin = 0; begin < n; begin += weights_block) {
    const std::size_t end = n - begin < weights_block ? n : begin + weights_block;
    const double* w = weights_or_ones(weight, begin);
    SPINNEY_IVDEP
    for (std::size_t i = begin; i < end; ++i) {
      const double p = proba[i], hit = target[i] == wanted ? 1.0 : 0.0;
      out[i] = {static_cast<float>((p - hit) * w[i - begin]),
                static_cast<float>(factor * p * (1.0 - p) * w[i - begin])};
    }
  }
}
