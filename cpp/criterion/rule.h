// The names of the criteria, and which of them share the order in which they rank the cuts of a node.
#pragma once

#include <cstdint>

namespace spinney {

enum class Rule : std::uint8_t {
  gini,
  entropy,
  misclassification,
  chi2,
  gain_ratio,  // classes
  squared_error,
  friedman_mse,
  poisson,
  absolute_error,  // values
};

inline bool is_class_rule(Rule r) { return r <= Rule::gain_ratio; }

}  // namespace spinney
