// Kernels, compiled once per instruction set; see base/cpu.h.

#include "base/lanes.h"
#include "base/math.h"
#include "local/kernels.h"

namespace spinney {
namespace {

constexpr std::size_t n_lanes = LocalKernels::n_lanes, n_together = LocalKernels::n_together;
using Keys = Lanes<double, n_lanes>;

SPINNEY_INLINE Keys absolute(const Keys& a) {
  return each<Keys>(
      [](auto x) __attribute__((always_inline)) {
        typedef std::int64_t Bits __attribute__((vector_size(sizeof x)));
        return (Bits)x & 0x7fffffffffffffff;
      },
      a);
}

// x^p of a non-negative number; 0 for subnormal results.
SPINNEY_INLINE double power(double x, double p) { return x < 0x1p-1022 ? 0.0 : exp_ieee(p * log_ieee(x)); }

// Each sums the keys of a block term by term, from the numbers of a query and of 16 rows.
struct Squares {
  Keys sum = every<n_lanes>(0.0);
  SPINNEY_INLINE void add(const Keys& query, const Keys& rows) {
    const Keys apart = query - rows;
    sum += apart * apart;
  }
  SPINNEY_INLINE Keys keys() const { return sum; }
};

struct Absolute {
  Keys sum = every<n_lanes>(0.0);
  SPINNEY_INLINE void add(const Keys& query, const Keys& rows) { sum += absolute(query - rows); }
  SPINNEY_INLINE Keys keys() const { return sum; }
};

struct Powers {
  double p;
  Keys sum = every<n_lanes>(0.0);
  SPINNEY_INLINE void add(const Keys& query, const Keys& rows) {
    double apart[n_lanes];
    store(apart, absolute(query - rows));
    for (std::size_t i = 0; i < n_lanes; ++i) apart[i] = power(apart[i], p);
    sum += load<n_lanes>(apart);
  }
  SPINNEY_INLINE Keys keys() const { return sum; }
};

struct Largest {
  Keys most = every<n_lanes>(0.0);
  SPINNEY_INLINE void add(const Keys& query, const Keys& rows) { most = larger(most, absolute(query - rows)); }
  SPINNEY_INLINE Keys keys() const { return most; }
};

struct Differing {
  Keys sum = every<n_lanes>(0.0);
  SPINNEY_INLINE void add(const Keys& query, const Keys& rows) {
    sum += select(query == rows, every<n_lanes>(0.0), every<n_lanes>(1.0));
  }
  SPINNEY_INLINE Keys keys() const { return sum; }
};

// Mean over the terms that both rows have; NaN is missing. Rows without a common term have the maximum distance 1.
struct Gower {
  Keys sum = every<n_lanes>(0.0), n_common = every<n_lanes>(0.0);
  SPINNEY_INLINE void add(const Keys& query, const Keys& rows) {
    const Keys none = every<n_lanes>(0.0), one = every<n_lanes>(1.0), apart = absolute(query - rows);
    const auto is_common = apart == apart;
    sum += select(is_common, smaller(one, apart), none);
    n_common += select(is_common, one, none);
  }
  SPINNEY_INLINE Keys keys() const {
    const Keys none = every<n_lanes>(0.0), one = every<n_lanes>(1.0);
    const auto is_empty = n_common == none;
    return select(is_empty, one, sum / select(is_empty, one, n_common));
  }
};

template <class Start>
SPINNEY_INLINE std::size_t scan(Start start, const double* query, const double* blocks, std::size_t n_terms,
                                std::size_t n_blocks, double limit, double* keys) {
  const Keys highest = every<n_lanes>(limit);
  for (std::size_t b = 0; b < n_blocks; ++b) {
    auto sums = start();
    const double* block = blocks + b * n_terms * n_lanes;
    for (std::size_t t = 0; t < n_terms; ++t) sums.add(every<n_lanes>(query[t]), load<n_lanes>(block + t * n_lanes));
    const Keys found = sums.keys();
    if (any_of(found <= highest)) {
      store(keys, found);
      return b;
    }
  }
  return n_blocks;
}

std::size_t first_near(const Measure& measure, const double* query, const double* blocks, std::size_t n_terms,
                       std::size_t n_blocks, double limit, double* keys) {
  const auto by = [&](auto start) __attribute__((always_inline)) {
    return scan(start, query, blocks, n_terms, n_blocks, limit, keys);
  };
  switch (measure.metric) {
    case Metric::squares:
      return by([] { return Squares{}; });
    case Metric::absolute:
      return by([] { return Absolute{}; });
    case Metric::powers:
      return by([&] { return Powers{.p = measure.p}; });
    case Metric::largest:
      return by([] { return Largest{}; });
    case Metric::differing:
      return by([] { return Differing{}; });
    case Metric::gower:
      return by([] { return Gower{}; });
  }
  return n_blocks;
}

std::size_t first_candidate_block(const float* queries, const float* blocks, const float* half, std::size_t n_terms,
                                  std::size_t n_blocks, const float* limits, std::uint32_t* which) {
  static_assert(n_together == 4);
  using Sixteen = Lanes<float, n_lanes>;
  const Sixteen limit0 = every<n_lanes>(limits[0]), limit1 = every<n_lanes>(limits[1]),
                limit2 = every<n_lanes>(limits[2]), limit3 = every<n_lanes>(limits[3]);
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const float* block = blocks + b * n_terms * n_lanes;
    const Sixteen start = load<n_lanes>(half + b * n_lanes);
    Sixteen a0 = start, a1 = start, a2 = start, a3 = start;
    for (std::size_t t = 0; t < n_terms; ++t) {
      const Sixteen rows = load<n_lanes>(block + t * n_lanes);
      const float* q = queries + t * n_together;
      a0 = rough_multiply_subtract(every<n_lanes>(q[0]), rows, a0);
      a1 = rough_multiply_subtract(every<n_lanes>(q[1]), rows, a1);
      a2 = rough_multiply_subtract(every<n_lanes>(q[2]), rows, a2);
      a3 = rough_multiply_subtract(every<n_lanes>(q[3]), rows, a3);
    }
    const auto near0 = a0 <= limit0, near1 = a1 <= limit1, near2 = a2 <= limit2, near3 = a3 <= limit3;
    if (any_of((near0 | near1) | (near2 | near3))) {
      *which = static_cast<std::uint32_t>(any_of(near0)) | static_cast<std::uint32_t>(any_of(near1)) << 1 |
               static_cast<std::uint32_t>(any_of(near2)) << 2 | static_cast<std::uint32_t>(any_of(near3)) << 3;
      return b;
    }
  }
  return n_blocks;
}

double box_key(const Measure& measure, const double* query, const double* low, const double* high,
               std::size_t n_terms) {
  const auto gap = [&](std::size_t t) __attribute__((always_inline)) {
    const double below = low[t] - query[t], above = query[t] - high[t], outside = below > above ? below : above;
    return outside > 0 ? outside : 0.0;
  };
  double sum = 0;
  switch (measure.metric) {
    case Metric::squares:
      for (std::size_t t = 0; t < n_terms; ++t) sum += gap(t) * gap(t);
      break;
    case Metric::absolute:
      for (std::size_t t = 0; t < n_terms; ++t) sum += gap(t);
      break;
    case Metric::powers:
      for (std::size_t t = 0; t < n_terms; ++t) sum += power(gap(t), measure.p);
      break;
    case Metric::largest:
      for (std::size_t t = 0; t < n_terms; ++t) sum = gap(t) > sum ? gap(t) : sum;
      break;
    case Metric::differing:
    case Metric::gower:
      break;
  }
  return sum;
}

}  // namespace

const LocalKernels& local_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr LocalKernels table{
      .first_near = first_near, .first_candidate_block = first_candidate_block, .box_key = box_key};
  return table;
}

}  // namespace spinney
