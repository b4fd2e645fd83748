// From scores to predictions, with the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney {

enum class LinkKind : std::uint8_t { identity, log, logit, half_logit, focal, hinge, softmax, one_vs_rest };

struct Link {
  LinkKind kind = LinkKind::identity;
  double parameter = 0;  // of the focal loss
};

inline std::size_t n_predicted(Link link, std::size_t n_scores) {
  return link.kind >= LinkKind::logit && link.kind <= LinkKind::hinge ? 2 : n_scores;
}

// predicted[row][n_predicted] for scores[row][n_scores]: values, or shares of the classes.
void apply_link(Link link, const double* scores, std::size_t n_rows, std::size_t n_scores, double* predicted);

}  // namespace spinney
