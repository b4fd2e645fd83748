// Templates of exported C files; @FIELDS@ are filled in.
// ---- exp
/* e^x by IEEE operations alone, bit-identical on every machine; x is clipped to -700 ... 700. */
static double exp_ieee(double x) {
  const double shift = 0x1.8p52;
  double shifted, k, r, p, result;
  uint64_t scale, bits;
  x = x < -700.0 ? -700.0 : x;
  x = x > 700.0 ? 700.0 : x;
  shifted = x * 1.4426950408889634 + shift;
  k = shifted - shift;
  r = (x - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b39p-40;
  p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  memcpy(&scale, &shifted, sizeof scale);
  memcpy(&bits, &p, sizeof bits);
  bits += scale << 52;
  memcpy(&result, &bits, sizeof result);
  return result;
}
// ---- log
/* The natural logarithm of a positive number, bit-identical on every machine. */
static double log_ieee(double x) {
  const uint64_t sqrt_half = UINT64_C(0x3FE6A09E667F3BCD);
  uint64_t bits, exponent;
  double e, m, s, z, p;
  memcpy(&bits, &x, sizeof bits);
  exponent = ((bits - sqrt_half) >> 52) & 0xFFF;
  bits -= exponent << 52;
  memcpy(&m, &bits, sizeof m);
  e = exponent < 0x800 ? (double)exponent : (double)exponent - 4096.0;
  s = (m - 1.0) / (m + 1.0);
  z = s * s;
  p = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  return e * 0x1.62e42fefa0000p-1 + (2.0 * s + (2.0 * s * z * p + e * 0x1.cf79abc9e3b39p-40));
}
// ---- leaf_of_numbers
static const double *leaf_of(uint32_t at, const double *row) {
  while (node_column[at] >= 0) {
    const double x = row[node_column[at]];
    const int left = x != x ? node_flags[at] & 1 : x <= node_threshold[at];
    at = left ? at + 1 : node_next[at];
  }
  return leaf_value + (size_t)node_next[at] * width;
}
// ---- leaf_of_sets
static int is_left(uint32_t at, const double *row) {
  const int32_t column = node_column[at];
  const double x = row[column];
  uint32_t code, n;
  if (!(node_flags[at] & 2)) return x != x ? node_flags[at] & 1 : x <= node_threshold[at];
  if (!(x >= 0)) return node_flags[at] & 1;
  n = n_categories[column];
  code = x < n ? (uint32_t)x : n;
  return set_words[node_set[at] + code / 32] >> (code % 32) & 1;
}

static const double *leaf_of(uint32_t at, const double *row) {
  while (node_column[at] >= 0) at = is_left(at, row) ? at + 1 : node_next[at];
  return leaf_value + (size_t)node_next[at] * width;
}
// ---- combine
/* The values that trees split on: some columns, then linear combinations of columns. */
static void combine(const double *row, double *split) {
  int k, m;
  for (k = 0; k < n_plain; ++k) split[k] = row[plain_column[k]];
  for (k = 0; k < n_combinations; ++k) {
    double total = part_coefficient[k * n_combined] * row[part_column[k * n_combined]];
    for (m = 1; m < n_combined; ++m)
      total = total + part_coefficient[k * n_combined + m] * row[part_column[k * n_combined + m]];
    split[n_plain + k] = total;
  }
}
// ---- combine_pairs
/* Weighted sums, products, ratios and crosses; missing where products and ratios are not finite. */
static void combine(const double *row, double *split) {
  int k;
  for (k = 0; k < n_plain; ++k) split[k] = row[plain_column[k]];
  for (k = 0; k < n_combinations; ++k) {
    const double a = row[part_column[2 * k]], b = row[part_column[2 * k + 1]];
    double found = operation[k] == 1 ? a * b : a / b;
    if (operation[k] == 0 || operation[k] == 3) {
      found = part_coefficient[2 * k] * a;
      found = found + part_coefficient[2 * k + 1] * b;
    } else if (found - found != 0) {
      found = found - found;
    }
    split[n_plain + k] = found;
  }
}
// ---- linear_leaf
static double value_of(uint32_t at, const double *row) {
  const double *constant = leaf_of(at, row);
  const size_t leaf = (size_t)(constant - leaf_value);
  double sum = leaf_base[leaf];
  uint32_t t;
  if (term_begin[leaf] == term_begin[leaf + 1]) return *constant;
  for (t = term_begin[leaf]; t < term_begin[leaf + 1]; ++t) {
    double x = row[term_column[t]];
    if (x != x) return *constant;
    x = x < term_low[t] ? term_low[t] : x;
    x = x > term_high[t] ? term_high[t] : x;
    sum += term_slope[t] * (x - term_middle[t]);
  }
  return sum;
}
// ---- scores
void @NAME@_scores(const double *row, double *out) {
  int t, k;
  @COMBINE@
  for (k = 0; k < n_scores; ++k) out[k] = 0.0;
  for (t = 0; t < n_trees; ++t) out[t % n_scores] += @VALUE_OF@(tree_root[t], @SPLIT_ROW@);
  for (k = 0; k < n_scores; ++k) out[k] += start[k];
}
// ---- link_identity
static void apply_link(const double *scores, double *out) { out[0] = scores[0]; }
// ---- link_log
static void apply_link(const double *scores, double *out) { out[0] = exp_ieee(scores[0]); }
// ---- link_logit
static void apply_link(const double *scores, double *out) {
  out[1] = 1.0 / (1.0 + exp_ieee(-scores[0]));
  out[0] = 1.0 - out[1];
}
// ---- link_half_logit
static void apply_link(const double *scores, double *out) {
  out[1] = 1.0 / (1.0 + exp_ieee(-(2.0 * scores[0])));
  out[0] = 1.0 - out[1];
}
// ---- link_hinge
static void apply_link(const double *scores, double *out) {
  const double size = scores[0] < 0 ? -scores[0] : scores[0];
  const double larger = 1.0 / (2.0 - (size < 1.0 ? size : 1.0));
  out[1] = scores[0] < 0 ? 1.0 - larger : larger;
  out[0] = 1.0 - out[1];
}
// ---- link_focal
static void apply_link(const double *scores, double *out) {
  const double gamma = @GAMMA@;
  const double positive = scores[0] < 0 ? -scores[0] : scores[0];
  const double size = positive < 700.0 ? positive : 700.0, e = exp_ieee(-size), log_factor = log_ieee(1.0 + e);
  const double p = 1.0 / (1.0 + e), q = e / (1.0 + e), log_p = -log_factor, log_q = -size - log_factor;
  const double of_winner = exp_ieee(gamma * (log_q - log_p)) * (q - gamma * p * log_p);
  const double of_loser = p - gamma * q * log_q;
  const double larger = of_loser / (of_winner + of_loser);
  out[1] = scores[0] < 0 ? 1.0 - larger : larger;
  out[0] = 1.0 - out[1];
}
// ---- link_softmax
static void softmax(const double *scores, double *out) {
  double most = scores[0], sum = 0;
  int k;
  for (k = 1; k < n_scores; ++k) most = scores[k] > most ? scores[k] : most;
  for (k = 0; k < n_scores; ++k) out[k] = exp_ieee(scores[k] - most);
  for (k = 0; k < n_scores; ++k) sum += out[k];
  for (k = 0; k < n_scores; ++k) out[k] /= sum;
}
// ---- link_one_vs_rest
static void one_vs_rest(const double *scores, double *out) {
  double sum = 0;
  int k;
  for (k = 0; k < n_scores; ++k) sum += out[k] = 1.0 / (1.0 + exp_ieee(-2.0 * scores[k]));
  if (!(sum > 0)) {
    softmax(scores, out);
    return;
  }
  for (k = 0; k < n_scores; ++k) out[k] /= sum;
}
// ---- predict_scores
void @NAME@_predict(const double *row, double *out) {
  double scores[n_scores];
  @NAME@_scores(row, scores);
  @LINK@(scores, out);
}
// ---- predict_leaf
void @NAME@_predict(const double *row, double *out) {
  const double *value;
  int k;
  @COMBINE@
  value = leaf_of(tree_root[0], @SPLIT_ROW@);
  for (k = 0; k < width; ++k) out[k] = value[k];
}
// ---- predict_mean
void @NAME@_predict(const double *row, double *out) {
  int t, k;
  @COMBINE@
  for (k = 0; k < width; ++k) out[k] = 0.0;
  for (t = 0; t < n_trees; ++t) {
    const double *value = leaf_of(tree_root[t], @SPLIT_ROW@);
    for (k = 0; k < width; ++k) out[k] += value[k];
  }
  for (k = 0; k < width; ++k) out[k] /= n_trees;
}
// ---- predict_isolation
void @NAME@_predict(const double *row, double *out) {
  const double mean_length = @MEAN_LENGTH@;
  double length = 0.0, ratio;
  int t;
  @COMBINE@
  for (t = 0; t < n_trees; ++t) length += *leaf_of(tree_root[t], @SPLIT_ROW@);
  ratio = mean_length > 0 ? length / n_trees / mean_length : 1.0;
  if (ratio - 1.0 < 1e-12 && ratio - 1.0 > -1e-12) ratio = 1.0;
  out[0] = -exp_ieee(-0.6931471805599453 * ratio);
}
// ---- class_isolation
void @NAME@_class(const double *row, int *codes) {
  double score;
  @NAME@_predict(row, &score);
  codes[0] = score - @OFFSET@ < 0 ? -1 : 1;
}
// ---- class_two_scores
void @NAME@_class(const double *row, int *codes) {
  double score;
  @NAME@_scores(row, &score);
  codes[0] = score > 0;
}
// ---- class_scores
void @NAME@_class(const double *row, int *codes) {
  double scores[n_scores];
  int k, best = 0;
  @NAME@_scores(row, scores);
  for (k = 1; k < n_scores; ++k)
    if (scores[k] > scores[best]) best = k;
  codes[0] = best;
}
// ---- class_probabilities
void @NAME@_class(const double *row, int *codes) {
  double proba[width];
  int output, k, first = 0;
  @NAME@_predict(row, proba);
  for (output = 0; output < @NAME@_n_outputs; ++output) {
    int best = 0;
    for (k = 1; k < classes_of_output[output]; ++k)
      if (proba[first + k] > proba[first + best]) best = k;
    codes[output] = best;
    first += classes_of_output[output];
  }
}
// ---- class_cost
void @NAME@_class(const double *row, int *codes) {
  double proba[width], expected[n_classes], least;
  int i, j;
  @NAME@_predict(row, proba);
  for (j = 0; j < n_classes; ++j) {
    expected[j] = proba[0] * cost[j];
    for (i = 1; i < n_classes; ++i) expected[j] = expected[j] + proba[i] * cost[i * n_classes + j];
  }
  least = expected[0];
  for (j = 1; j < n_classes; ++j) least = expected[j] < least ? expected[j] : least;
  for (j = 0; j < n_classes; ++j)
    if (expected[j] <= least * (1 + 1e-12)) break;
  codes[0] = j;
}
// ---- temper
/* Divide the logarithms of probabilities by a temperature and normalise. */
static void temper(double *proba, double temperature) {
  double most, sum = 0.0;
  int k;
  if (is_second_alone) proba[0] = 1.0 - proba[1];
  for (k = 0; k < n_values; ++k) {
    const double p = proba[k] < 0x1p-52 ? 0x1p-52 : proba[k];
    proba[k] = log_ieee(p) / temperature;
  }
  most = proba[0];
  for (k = 1; k < n_values; ++k) most = proba[k] > most ? proba[k] : most;
  for (k = 0; k < n_values; ++k) proba[k] = exp_ieee(proba[k] - most);
  for (k = 0; k < n_values; ++k) sum += proba[k];
  for (k = 0; k < n_values; ++k) proba[k] /= sum;
}
// ---- curve
/* The calibration curve of two classes: linear between its points. */
static void calibrate(double *proba) {
  double x = proba[1];
  int at = 0;
  x = x < curve_x[0] ? curve_x[0] : x;
  x = x > curve_x[n_points - 1] ? curve_x[n_points - 1] : x;
  while (at + 2 < n_points && curve_x[at + 1] <= x) ++at;
  if (n_points == 1) {
    proba[1] = curve_y[0];
  } else {
    const double fraction = (x - curve_x[at]) / (curve_x[at + 1] - curve_x[at]);
    const double step = fraction * (curve_y[at + 1] - curve_y[at]);
    proba[1] = fraction == 1.0 ? curve_y[at + 1] : curve_y[at] + step;
  }
  proba[0] = 1.0 - proba[1];
}
// ---- add_member
static void add_member(double weight, const double *own, double *out) {
  int k;
  for (k = 0; k < n_values; ++k) {
    const double weighted = weight * own[k];
    out[k] += weighted;
  }
}
