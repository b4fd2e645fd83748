// Classification: confusion matrix, ROC, precision and recall, calibration, and the costs of both kinds of errors.
drawers.classification = (section) => {
  let at = section.classes.length - 1, rows = "test", cost = 0;
  if (section.classes.length > 1) at = 0;
  const now = () => section.classes[at][rows];
  const state = () => best_threshold(section.classes[at].folds, cost);
  const charts = [
    chart("ROC curve", (width) => roc_chart(now(), state(), width)),
    chart("Precision and recall", (width) => recall_chart(now(), state(), width)),
    chart("Calibration", (width) => calibration_chart(section.classes[at], width)),
    chart("Predicted probabilities of positive and negative rows", (width) => proba_chart(now(), state(), elide(section.classes[at].name, 18), width)),
    chart("Cost by threshold", (width) => cost_chart(now(), state(), cost, width)),
  ];
  const figures = el("div", { class: "figures", id: "cost-figures" }), matrix = el("div", { class: "scroll", id: "cost-matrix" });
  const ratio = el("b", { id: "cost-ratio" }), areas = el("div", { class: "figures" });
  const slider = range("Cost of a false negative relative to a false positive", -40, 40, 1, 0, (value) => { cost = value / 10; update(); });
  slider.id = "cost-slider";
  function update() {
    const part = now(), chosen = state(), name = elide(section.classes[at].name, 24);
    ratio.replaceChildren(cost_words(cost, name));
    slider.setAttribute("aria-valuetext", cost_words(cost, name));
    const counts = counts_at(part, chosen.threshold), total = part.n_positive + part.n_negative, price = prices(cost);
    const mean_cost = (price.fn * counts.fn + price.fp * counts.fp) / total, positive = counts.tp + counts.fp;
    const recall = part.n_positive ? counts.tp / part.n_positive : null, precision = positive ? counts.tp / positive : null;
    const never = (price.fn * part.n_positive) / total, always = (price.fp * part.n_negative) / total, simple = Math.min(never, always);
    figures.replaceChildren(
      figure("threshold", chosen.threshold > 1 ? "> 1" : fixed(chosen.threshold, 3), "lowest cost on held-out rows"),
      figure(`predicted ${name}`, pct(positive / total, 1), `${whole(positive)} of ${plural(total, "row")}`),
      figure("recall", pct(recall, 1)), figure("precision", pct(precision, 1)), figure("F1", fixed(f1(recall, precision), 3)),
      figure("cost per 100 rows", num(100 * mean_cost, 3), simple > 0 ? `${pct(1 - mean_cost / simple)} less than ${never <= always ? "never" : "always"} predicting it` : null));
    matrix.replaceChildren(two_by_two(counts, part, name));
    areas.replaceChildren(figure("area under the ROC curve", fixed(part.roc_auc, 3), part.roc_auc_error === null ? null : `± ${fixed(part.roc_auc_error, 3)}`), figure("average precision", fixed(part.average_precision, 3), `${fixed(part.n_positive / total, 3)} by chance`), figure("Brier score", fixed(part.brier, 4), "mean squared error of the probability"));
    for (const host of charts) if (host.isConnected) host.redraw();
  }
  update();
  const pickers = el("div", { class: "bar" },
    section.classes.length > 1 ? select("Class", section.classes.map((c, k) => [k, c.name]), at, (value) => { at = Number(value); update(); }) : null,
    select("Evaluated on", [["test", "test set"], ["folds", "held-out rows of the folds"]], rows, (value) => { rows = value; update(); }));
  return [
    card("Decision threshold and costs", `The threshold minimises the cost on the held-out rows of the folds; the figures are for the rows chosen here. Probabilities are those of ${section.model}.`,
      pickers, el("p", { class: "cost-line" }, ratio), el("div", { class: "ends no-print" }, el("span", {}, "false positives cost more"), slider, el("span", {}, "false negatives cost more")), figures,
      el("div", { class: "grid three" }, captioned("Confusion matrix at the threshold", matrix), captioned("Cost per 100 rows by threshold", charts[4]), captioned("Predicted probabilities", charts[3]))),
    card("ROC, precision and recall, calibration", null, areas, el("div", { class: "grid three" }, captioned("ROC curve", charts[0]), captioned("Precision-recall curve", charts[1]), captioned("Calibration curve", charts[2]))),
    el("div", { class: "grid one" }, confusion_card(section), misclassified_card(section)),
  ];
};

function captioned(words, host) { return el("div", {}, el("h3", {}, words), host); }

function f1(recall, precision) { return recall + precision > 0 ? (2 * recall * precision) / (recall + precision) : null; }

// Costs of a false negative and a false positive; the slider is logarithmic, from 1:16 to 16:1.
function prices(cost) {
  return cost >= 0 ? { fn: 2 ** cost, fp: 1 } : { fn: 1, fp: 2 ** -cost };
}
function cost_words(cost, name) {
  const price = prices(cost), times = num(Math.max(price.fn, price.fp), 2);
  if (cost === 0) return `A false negative (a missed “${name}”) costs as much as a false positive.`;
  return cost > 0 ? `A false negative (a missed “${name}”) costs as much as ${times} false positives.` : `A false positive costs as much as ${times} false negatives (missed “${name}”).`;
}
function best_threshold(part, cost) {
  const price = prices(cost);
  const costs = part.threshold.map((t, k) => price.fn * (part.n_positive - part.true_positives[k]) + price.fp * part.false_positives[k]);
  const k = d3.minIndex(costs);
  const below = part.threshold[k + 1];
  return { threshold: k === 0 ? 1.01 : below === undefined ? part.threshold[k] : (part.threshold[k] + below) / 2 };
}
function index_at(part, threshold) {
  return Math.max(0, d3.bisector((t) => -t).right(part.threshold, -threshold) - 1);
}
function counts_at(part, threshold) {
  const k = index_at(part, threshold), tp = part.true_positives[k], fp = part.false_positives[k];
  return { tp, fp, fn: part.n_positive - tp, tn: part.n_negative - fp };
}

function two_by_two(counts, part, name) {
  const total = part.n_positive + part.n_negative;
  const [tp, fn, fp, tn] = shares([counts.tp, counts.fn, counts.fp, counts.tn].map((n) => n / total), 1);
  const cell = (count, of, colour, share) => el("td", { class: "heat", style: { background: tint(colour, of ? 0.9 * (count / of) : 0) } }, el("b", {}, whole(count)), el("div", {}, share));
  return el("table", { class: "matrix" }, el("thead", {}, el("tr", {}, el("th", {}, ""), el("th", { scope: "col" }, `predicted ${name}`), el("th", { scope: "col" }, "predicted other"))), el("tbody", {},
    el("tr", {}, el("th", { scope: "row" }, `actual ${name}`), cell(counts.tp, part.n_positive, "var(--accent)", tp), cell(counts.fn, part.n_positive, "var(--high)", fn)),
    el("tr", {}, el("th", { scope: "row" }, "actual other"), cell(counts.fp, part.n_negative, "var(--high)", fp), cell(counts.tn, part.n_negative, "var(--accent)", tn))));
}

// ---- curves ---------------------------------------------------------------------------------------------------------------
const UNIT = { domain: [0, 1], ticks: 5, label: null, tickFormat: tick };
function square(width) { return Math.round(Math.min(300, Math.max(220, width * 0.82))); }

function roc_chart(part, chosen, width) {
  const points = part.threshold.map((t, k) => ({ t, x: part.n_negative ? part.false_positives[k] / part.n_negative : 0, y: part.n_positive ? part.true_positives[k] / part.n_positive : 0 }));
  const here = points[index_at(part, chosen.threshold)];
  return plot(width, { height: square(width), marginLeft: 40, x: { ...UNIT, label: "false positive rate", labelAnchor: "center", labelArrow: "none" }, y: UNIT, marks: [
    grid_x({ ticks: 5 }), grid_y({ ticks: 5 }), Plot.line([[0, 0], [1, 1]], { stroke: "var(--line-2)", strokeDasharray: "3 4" }),
    Plot.areaY(points, { x: "x", y1: 0, y2: "y", fill: "var(--accent)", fillOpacity: 0.08 }), Plot.line(points, { x: "x", y: "y", stroke: "var(--accent)", strokeWidth: 2.2 }),
    Plot.dot([here], { x: "x", y: "y", r: 6, fill: "var(--test)", stroke: "var(--card)", strokeWidth: 2 }),
    Plot.tip(points, Plot.pointer({ ...TIP, x: "x", y: "y", title: (p) => `threshold ${fixed(p.t, 3)}\nrecall ${pct(p.y, 1)}\nfalse positive rate ${pct(p.x, 1)}` })) ] });
}

function recall_chart(part, chosen, width) {
  const points = part.threshold.map((t, k) => ({ t, x: part.n_positive ? part.true_positives[k] / part.n_positive : 0, y: part.true_positives[k] + part.false_positives[k] ? part.true_positives[k] / (part.true_positives[k] + part.false_positives[k]) : null })).filter((p) => p.y !== null);
  const at = counts_at(part, chosen.threshold), positive = at.tp + at.fp;
  const here = positive ? [{ x: at.tp / Math.max(1, part.n_positive), y: at.tp / positive }] : [];
  const chance = part.n_positive / (part.n_positive + part.n_negative);
  return plot(width, { height: square(width), marginLeft: 40, x: { ...UNIT, label: "recall", labelAnchor: "center", labelArrow: "none" }, y: UNIT, marks: [
    grid_x({ ticks: 5 }), grid_y({ ticks: 5 }), Plot.ruleY([chance], { stroke: "var(--line-2)", strokeDasharray: "3 4", strokeWidth: 1.5 }),
    Plot.line(points, { x: "x", y: "y", stroke: "var(--accent)", strokeWidth: 2.2 }), Plot.dot(here, { x: "x", y: "y", r: 6, fill: "var(--test)", stroke: "var(--card)", strokeWidth: 2 }),
    Plot.tip(points, Plot.pointer({ ...TIP, x: "x", y: "y", title: (p) => `threshold ${fixed(p.t, 3)}\nrecall ${pct(p.x, 1)}\nprecision ${pct(p.y, 1)}` })) ] });
}

function calibration_chart(of, width) {
  const parts = [["folds", "var(--cv)"], ["test", "var(--test)"]];
  const bins = parts.flatMap(([name, colour]) => of[name].bins.map((bin) => ({ ...bin, name, colour })));
  const words = legend([["var(--cv)", "held-out rows of the folds", "line"], ["var(--test)", "test set", "line"]]);
  return el("div", {}, plot(width, { height: square(width), marginLeft: 40, x: { ...UNIT, label: "predicted probability", labelAnchor: "center", labelArrow: "none" }, y: UNIT, color: { type: "identity" }, marks: [
    grid_x({ ticks: 5 }), grid_y({ ticks: 5 }), Plot.line([[0, 0], [1, 1]], { stroke: "var(--line-2)", strokeDasharray: "3 4" }),
    Plot.ruleX(bins, { x: "predicted", y1: "low", y2: "high", stroke: "colour", strokeWidth: 1.4, strokeOpacity: 0.6 }),
    Plot.line(bins, { x: "predicted", y: "observed", z: "name", stroke: "colour", strokeWidth: 1.6 }), Plot.dot(bins, { x: "predicted", y: "observed", fill: "colour", r: 3.6 }),
    Plot.tip(bins, Plot.pointer({ ...TIP, x: "predicted", y: "observed", title: (b) => `${b.name === "test" ? "test set" : "held-out rows of the folds"}\npredicted ${pct(b.predicted, 1)}, observed ${pct(b.observed, 1)}\n${plural(b.n, "row")}` })) ] }), words);
}

function proba_chart(part, chosen, name, width) {
  const step = 1 / part.bars[0].length, kinds = [["var(--accent)", `actual ${name}`, part.bars[0], 1], ["var(--train)", "actual other", part.bars[1], -1]];
  const bars = kinds.flatMap(([colour, name, counts, sign]) => counts.map((n, k) => ({ colour, name, n, x1: k * step, x2: (k + 1) * step, y: (sign * n) / Math.max(1, d3.max(counts)) })));
  const picture = plot(width, { height: 190, marginLeft: 10, marginRight: 10, marginTop: 20, x: { ...UNIT, label: "predicted probability", labelAnchor: "center", labelArrow: "none" }, y: { axis: null, domain: [-1, 1] }, color: { type: "identity" }, marks: [
    Plot.rect(bars, { x1: "x1", x2: "x2", y1: 0, y2: "y", fill: "colour", insetLeft: 0.5, insetRight: 0.5 }), Plot.ruleY([0], { stroke: "var(--line-2)" }),
    Plot.ruleX([Math.min(1, chosen.threshold)], { stroke: "var(--test)", strokeWidth: 2 }), Plot.text([Math.min(1, chosen.threshold)], { x: (t) => t, frameAnchor: "top", dy: -12, text: () => "threshold", fill: "var(--test)", fontWeight: 600 }),
    Plot.tip(bars, Plot.pointerX({ ...TIP, x: (b) => (b.x1 + b.x2) / 2, y: "y", title: (b) => `${b.name}: ${plural(b.n, "row")}\nprobability ${pct(b.x1)} to ${pct(b.x2)}` })) ] });
  return el("div", {}, legend(kinds.map(([colour, words]) => [colour, words])), picture);
}

function cost_chart(part, chosen, cost, width) {
  const price = prices(cost), total = part.n_positive + part.n_negative;
  const points = part.threshold.map((t, k) => ({ t: Math.min(1, t), cost: (100 * (price.fn * (part.n_positive - part.true_positives[k]) + price.fp * part.false_positives[k])) / total }));
  const here = points[index_at(part, chosen.threshold)];
  return plot(width, { height: 190, marginLeft: 40, marginTop: 10, x: { ...UNIT, label: "threshold", labelAnchor: "center", labelArrow: "none" }, y: { label: null, ticks: 4, tickFormat: tick, zero: true }, marks: [
    grid_y({ ticks: 4 }), Plot.ruleX([Math.min(1, chosen.threshold)], { stroke: "var(--test)", strokeWidth: 2 }),
    Plot.line(points, { x: "t", y: "cost", stroke: "var(--accent)", strokeWidth: 2, curve: "step-before" }), Plot.dot([{ ...here, t: Math.min(1, chosen.threshold) }], { x: "t", y: "cost", r: 5, fill: "var(--test)", stroke: "var(--card)", strokeWidth: 2 }) ] });
}

// ---- confusion matrix and misclassified rows ---------------------------------------------------------------------------------
function confusion_card(section) {
  const { classes, counts, n_actual, n_predicted } = section.confusion;
  const names = classes.map((code) => elide(section.names[code], 16));
  const head = el("tr", {}, el("th", {}, "actual ↓  predicted →"), names.map((name) => el("th", { scope: "col" }, name)), ["recall", "precision", "F1"].map((name) => el("th", { class: "number", scope: "col" }, name)));
  const body = counts.map((row, i) => {
    const n = n_actual[i], recall = n ? row[i] / n : null, precision = n_predicted[i] ? row[i] / n_predicted[i] : null;
    return el("tr", {}, el("th", { scope: "row" }, names[i]), row.map((count, j) => el("td", { class: "heat", style: { background: tint(i === j ? "var(--accent)" : "var(--high)", n ? 0.9 * (count / n) : 0) } }, count ? whole(count) : "")), [pct(recall), pct(precision), fixed(f1(recall, precision), 2)].map((words) => el("td", { class: "number" }, words)));
  });
  const hidden = section.confusion.n_hidden ? ` ${plural(section.confusion.n_hidden, "rarer class", "rarer classes")} not shown.` : "";
  return card("Confusion matrix, test set", `The most probable class is predicted.${hidden}`, el("div", { class: "scroll", tabindex: 0 }, el("table", { class: "matrix" }, el("thead", {}, head), el("tbody", {}, body))));
}

function misclassified_card(section) {
  const { rows, columns, n_rows } = section.misclassified;
  if (!rows.length) return card("Misclassified test rows", "All test rows are classified correctly.");
  return card("Misclassified test rows", `Of ${plural(n_rows, "misclassified test row")}, those with the lowest probability of the true class.`, el("div", { class: "scroll", tabindex: 0 }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", {}, "row"), el("th", {}, "actual"), el("th", {}, "predicted"), columns.map((name) => el("th", {}, elide(name, 18))))),
    el("tbody", {}, rows.map((row) => el("tr", {}, el("td", {}, elide(row.row, 20)), el("td", {}, elide(row.actual, 16)), el("td", { class: "together" }, `${elide(row.predicted, 16)} ${pct(row.proba)}`), row.cells.map((cell) => el("td", { class: "faint together" }, cell))))))));
}
