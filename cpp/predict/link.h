// From scores to predictions, with the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney {

// Values; then shares of two classes; then of any number. Those with a comment on the line are for models of other libraries.
enum class LinkKind : std::uint8_t {
  identity,
  log,
  ascending,      // the scores of a row in order
  logistic,       // a value between 0 and 1
  signed_square,  // s |s|
  softplus,       // log(1 + e^s)
  logit,
  half_logit,
  focal,
  hinge,
  sigmoid,  // logit of a multiple of the score
  step,     // 1 above 0, else 0
  softmax,
  one_vs_rest,
  separate  // sigmoid of each class by itself: the shares need not add up to 1
};

struct Link {
  LinkKind kind = LinkKind::identity;
  double parameter = 0;  // of the focal loss; the multiple
};

inline bool has_parameter(LinkKind kind) {
  return kind == LinkKind::focal || kind == LinkKind::sigmoid || kind == LinkKind::separate;
}

inline std::size_t n_predicted(Link link, std::size_t n_scores) {
  return link.kind >= LinkKind::logit && link.kind <= LinkKind::step ? 2 : n_scores;
}

// predicted[row][n_predicted] for scores[row][n_scores]: values, or shares of the classes.
void apply_link(Link link, const double* scores, std::size_t n_rows, std::size_t n_scores, double* predicted);

}  // namespace spinney
