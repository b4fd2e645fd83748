// From scores to predictions, with the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney {

enum class Link : std::uint8_t { identity, log, logit, half_logit, softmax, one_vs_rest };

inline std::size_t n_predicted(Link link, std::size_t n_scores) {
  return link == Link::logit || link == Link::half_logit ? 2 : n_scores;
}

// predicted[row][n_predicted] for scores[row][n_scores]: values, or shares of the classes.
void apply_link(Link link, const double* scores, std::size_t n_rows, std::size_t n_scores, double* predicted);

}  // namespace spinney
