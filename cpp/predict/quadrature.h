// Gauss-Legendre quadrature on (0, 1): the integral of a polynomial of degree 2n - 1 as a weighted sum of n values.
#pragma once

#include <cstddef>
#include <vector>

namespace spinney {

struct Quadrature {
  std::vector<double> t, u, weight;  // points, one minus the points, weights; t ascending
  std::size_t size() const { return t.size(); }
};

// Built from sums, products and quotients alone, so that it is bit-identical everywhere.
Quadrature gauss_legendre(std::size_t n);

}  // namespace spinney
