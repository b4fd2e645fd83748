// The criteria, and which of them rank the cuts of a node identically.
#pragma once

#include <cstdint>

namespace spinney {

enum class Rule : std::uint8_t {
  gini,
  entropy,
  misclassification,
  chi2,
  generalised_gini,
  gain_ratio,  // classification
  squared_error,
  friedman_mse,
  poisson,
  rate,            // Poisson that allows sides without events
  absolute_error,  // regression
  user,            // any function of a node's rows
};

inline bool is_class_rule(Rule r) { return r <= Rule::gain_ratio; }
inline bool counts_events(Rule r) { return r == Rule::poisson || r == Rule::rate; }

}  // namespace spinney
