// Link functions from scores to predictions, bit-identical everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spinney {

// Numbers; then probabilities of two classes; then of any number. Those with a comment are for models of other
// libraries.
enum class LinkKind : std::uint8_t {
  identity,
  log,
  log1p,          // e^s - 1
  ascending,      // the sorted scores of a row
  logistic,       // a number between 0 and 1
  signed_square,  // s |s|
  softplus,       // log(1 + e^s)
  logit,
  half_logit,
  focal,
  hinge,
  sigmoid,  // logit of a multiple of the score
  step,     // 1 above 0, else 0
  ordinal,  // of ordered classes: the log-odds of a class up to k are cut k minus the score
  softmax,
  one_vs_rest,
  separate  // independent sigmoids of the classes, which need not sum to 1
};

struct Link {
  LinkKind kind = LinkKind::identity;
  double parameter = 0;           // of the focal loss; or the multiple
  std::vector<double> cuts = {};  // of ordered classes, ascending
};

inline bool has_parameter(LinkKind kind) {
  return kind == LinkKind::focal || kind == LinkKind::sigmoid || kind == LinkKind::separate;
}

// Whether the link turns one score into the probabilities of several classes.
inline bool takes_one_score(const Link& link) { return link.kind >= LinkKind::logit && link.kind <= LinkKind::ordinal; }

inline std::size_t n_predicted(const Link& link, std::size_t n_scores) {
  if (link.kind == LinkKind::ordinal) return link.cuts.size() + 1;
  return takes_one_score(link) ? 2 : n_scores;
}

// predicted[row][n_predicted] for scores[row][n_scores]: numbers or class probabilities.
void apply_link(const Link& link, const double* scores, std::size_t n_rows, std::size_t n_scores, double* predicted);

}  // namespace spinney
