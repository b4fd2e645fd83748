#include "predict/quadrature.h"

namespace spinney {

struct Legendre {
  double value, before;  // of degree n and n - 1
};

static Legendre legendre(std::size_t n, double x) {
  double before = 1.0, value = x;
  for (std::size_t k = 2; k <= n; ++k) {
    const auto d = static_cast<double>(k);
    const double next = ((2.0 * d - 1.0) * x * value - (d - 1.0) * before) / d;
    before = value;
    value = next;
  }
  return {value, before};
}

// The only root between two points of opposite sign.
static double bisect(std::size_t n, double low, double high) {
  const bool rises = legendre(n, high).value > 0;
  for (;;) {
    const double middle = (low + high) / 2;
    if (middle == low || middle == high) return middle;
    if ((legendre(n, middle).value > 0) == rises)
      high = middle;
    else
      low = middle;
  }
}

Quadrature gauss_legendre(std::size_t n) {
  std::vector<double> roots{0.0};  // of degree k, ascending; those of degree k + 1 lie between them
  for (std::size_t k = 2; k <= n; ++k) {
    std::vector<double> next(k);
    for (std::size_t i = 0; i < k / 2; ++i) {  // the others follow by symmetry
      next[i] = bisect(k, i == 0 ? -1.0 : roots[i - 1], roots[i]);
      next[k - 1 - i] = -next[i];
    }
    roots = std::move(next);
  }
  Quadrature rule;
  for (const double x : roots) {
    const double slope = static_cast<double>(n) * legendre(n, x).before;  // times 1 - x²
    rule.t.push_back((1.0 + x) / 2);
    rule.u.push_back((1.0 - x) / 2);
    rule.weight.push_back((1.0 - x) * (1.0 + x) / (slope * slope));
  }
  return rule;
}

}  // namespace spinney
