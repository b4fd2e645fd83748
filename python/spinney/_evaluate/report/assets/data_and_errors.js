// Data, residuals, learning curves, outliers and drift, and reproducibility.

// ---- data -------------------------------------------------------------------------------------------------------------------
drawers.data = (section) => {
  const has_notes = section.columns.some((column) => column.note || column.flags.length || !column.is_used);
  const body = el("tbody", {}), n = section.columns.length;
  const show = (words) => {
    const wanted = section.columns.filter((column) => column.name.toLowerCase().includes(words.toLowerCase()));
    body.replaceChildren(...wanted.map((column) => profile_row(column, has_notes)));
  };
  show("");
  const search = n > 12 ? el("label", { class: "field" }, "Find a column", el("input", { type: "search", oninput: (event) => show(event.target.value) })) : null;
  const head = ["Column", "Distribution in training rows", "Kind", "Missing", "Distinct", "Examples", ...(has_notes ? ["Notes"] : [])];
  return [
    el("div", { class: "grid wide-left" }, card(`The target: ${elide(section.target.name, 40)}`, `${plural(section.n_train, "training row")}; the test set has ${plural(section.n_test, "row")}.`, target_chart(section.target, section.n_train)),
      card("The table", null, el("div", { class: "figures" }, figure("rows with a target", whole(section.n_rows)), figure("columns", whole(n + section.n_hidden)), figure("used", whole(section.n_used)),
        figure("with missing values", whole(section.columns.filter((column) => column.missing > 0).length))))),
    card("Columns", section.n_hidden ? `The first ${n} of ${whole(n + section.n_hidden)}.` : null, search ? el("div", { class: "bar" }, search) : null,
      el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Columns" }, el("table", {}, el("thead", {}, el("tr", {}, head.map((words) => el("th", { scope: "col" }, words)))), body))),
  ];
};

function profile_row(column, has_notes) {
  const tags = [column.is_used ? null : el("span", { class: "tag warn" }, "excluded"), ...column.flags.map((word) => el("span", { class: word === "target leak" ? "tag bad" : "tag" }, word))];
  return el("tr", {}, el("td", { class: "name" }, column.name), el("td", {}, column.bars ? spark(column.bars) : el("span", { class: "faint" }, "–")), el("td", {}, column.kind),
    el("td", { class: "together" }, column.missing > 0 ? [el("span", { class: "gap" }, el("span", { style: { width: `${Math.max(3, 100 * column.missing)}%` } })), ` ${pct(column.missing)}`] : el("span", { class: "faint" }, "none")),
    el("td", { class: "number" }, whole(column.distinct)),
    el("td", { class: "faint" }, column.examples.join(", ")), has_notes ? el("td", {}, tags, column.note ? el("span", { class: "note" }, ` ${column.note}`) : null) : null);
}

// A small histogram. Bars of single values or categories stand above their names, as far as these fit.
function spark(bars) {
  const width = 150, height = 30, n = bars.counts.length, step = width / n, most = Math.max(...bars.counts, 1), names = bars.words ?? bars.values;
  const about = names ? names.map((name, k) => `${name}: ${whole(bars.counts[k])}`).join("\n") : `${bars.ends[0]} to ${bars.ends[1]}`;
  const bar = Math.max(1, Math.min(step - 1, names ? 34 : step)), svg = d3.create("svg").attr("width", width).attr("height", height + 14).attr("role", "img").attr("aria-label", about);
  svg.append("title").text(about);
  svg.selectAll("rect").data(bars.counts).join("rect").attr("x", (d, k) => (k + 0.5) * step - bar / 2).attr("width", bar).attr("rx", 1.5)
    .attr("y", (d) => height - (height * d) / most).attr("height", (d) => (height * d) / most).style("fill", bars.words ? "var(--class-2)" : "var(--class-0)").attr("opacity", 0.85);
  const write = (text, x, anchor) => svg.append("text").attr("x", x).attr("y", height + 11).attr("text-anchor", anchor).attr("font-size", 10.5).style("fill", "var(--ink-3)").text(text);
  const letters = Math.floor((step - 4) / 6);
  if (!names) { write(bars.ends[0], 0, "start"); write(bars.ends[1], width, "end"); }
  else if (letters >= (bars.words ? 4 : Math.max(...names.map((name) => name.length)))) names.forEach((name, k) => write(elide(name, letters), (k + 0.5) * step, "middle"));
  else if (bars.values) { write(names[0], 0.5 * step, step > 12 ? "middle" : "start"); write(names[n - 1], width - 0.5 * step, step > 12 ? "middle" : "end"); }
  return svg.node();
}

function target_chart(target, total) {
  return chart("Values of the target", (width) => {
    if (target.edges) {
      const bars = target.counts.map((n, k) => ({ n, x1: target.edges[k], x2: target.edges[k + 1] }));
      return plot(width, { height: 190, x: { label: null, ticks: target.values && target.values.length <= 12 ? target.values : Math.min(7, width / 90), tickFormat: tick }, y: { label: null, ticks: 4, tickFormat: (v) => whole(v) }, marks: [grid_y({ ticks: 4 }), Plot.rectY(bars, { x1: "x1", x2: "x2", y: "n", fill: "var(--class-0)", fillOpacity: 0.85, insetLeft: 0.5, insetRight: 0.5 }), Plot.ruleY([0], { stroke: "var(--line-2)" })] });
    }
    const margin = name_margin(target.words, width), texts = shares(target.counts.map((n) => n / total));
    const rows = target.words.map((words, k) => ({ k, words, n: target.counts[k], colour: class_colour(target.codes[k]) }));
    return plot(width, { height: 24 + 30 * rows.length, marginLeft: margin, marginRight: 92, marginTop: 4, marginBottom: 8, x: { axis: null }, y: { domain: rows.map((r) => r.k), tickFormat: (k) => fit_name(rows[k].words, margin), tickSize: 0, label: null }, color: { type: "identity" },
      marks: [Plot.barX(rows, { x: "n", y: "k", fill: "colour", insetTop: 4, insetBottom: 4, rx2: 3 }), Plot.text(rows, { x: "n", y: "k", text: (r) => `${whole(r.n)} · ${texts[r.k]}`, textAnchor: "start", dx: 6, fill: "var(--ink-2)" })] });
  });
}

// ---- residuals --------------------------------------------------------------------------------------------------------------
drawers.residuals = (section) => {
  const points = section.predicted.map((predicted, k) => ({ predicted, actual: section.actual[k], residual: section.actual[k] - predicted }));
  const span = d3.extent(points.flatMap((p) => [p.predicted, p.actual]));
  const against = chart("Actual against predicted values", (width) => plot(width, { height: 320, x: { domain: span, nice: true, label: "prediction", labelAnchor: "center", labelArrow: "none", ticks: Math.min(6, width / 80), tickFormat: tick }, y: { domain: span, nice: true, label: null, ticks: 6, tickFormat: tick }, marks: [
    grid_x({ ticks: 6 }), grid_y({ ticks: 6 }), Plot.line([[span[0], span[0]], [span[1], span[1]]], { stroke: "var(--ink-3)", strokeDasharray: "4 4" }),
    Plot.dot(points, { x: "predicted", y: "actual", r: 2.8, fill: "var(--class-0)", fillOpacity: 0.55 }), Plot.tip(points, Plot.pointer({ ...TIP, x: "predicted", y: "actual", title: (p) => `actual ${num(p.actual, 4)}\npredicted ${num(p.predicted, 4)}\nresidual ${num(p.residual, 3)}` })) ] }));
  const spread = chart("Residuals by prediction", (width) => plot(width, { height: 320, x: { label: "prediction", labelAnchor: "center", labelArrow: "none", ticks: Math.min(6, width / 80), tickFormat: tick }, y: { label: null, ticks: 6, tickFormat: tick }, marks: [
    grid_y({ ticks: 6 }), Plot.dot(points, { x: "predicted", y: "residual", r: 2, fill: "var(--ink-3)", fillOpacity: 0.35 }), Plot.ruleY([0], { stroke: "var(--ink-3)" }),
    Plot.areaY(section.bins, { x: "predicted", y1: "low", y2: "high", fill: "var(--class-0)", fillOpacity: 0.13, curve: "monotone-x" }), Plot.areaY(section.bins, { x: "predicted", y1: "lower", y2: "upper", fill: "var(--class-0)", fillOpacity: 0.22, curve: "monotone-x" }),
    Plot.line(section.bins, { x: "predicted", y: "middle", stroke: "var(--class-0)", strokeWidth: 2.2, curve: "monotone-x" }) ] }));
  const bars = section.bars.map((n, k) => ({ n, x1: section.edges[k], x2: section.edges[k + 1] }));
  const counts = chart("Distribution of the residuals", (width) => plot(width, { height: 220, x: { label: "residual (actual − predicted)", labelAnchor: "center", labelArrow: "none", ticks: Math.min(6, width / 80), tickFormat: tick }, y: { label: null, ticks: 4, tickFormat: (v) => whole(v) }, marks: [grid_y({ ticks: 4 }), Plot.rectY(bars, { x1: "x1", x2: "x2", y: "n", fill: "var(--class-0)", fillOpacity: 0.8, insetLeft: 0.5, insetRight: 0.5 }), Plot.ruleX([0], { stroke: "var(--ink)", strokeDasharray: "3 3" })] }));
  const worst = section.worst;
  return [
    card(null, null, el("div", { class: "figures" }, figure("root mean squared error", num(section.rmse, 4)), figure("mean absolute error", num(section.mae, 4)), section.quantiles.map((q) => figure(`${pct(q.level)} quantile of the absolute error`, num(q.error, 3))), figure("mean residual", num(section.bias, 2), section.bias_error === null ? null : `± ${num(section.bias_error, 2)}`))),
    el("div", { class: "grid" }, card("Actual against predicted values", `${plural(points.length, "test row")} of ${whole(section.n)}; on the dashed line predictions are exact.`, against), card("Residuals by prediction", "Median, and the central 50 % and 90 % of the residuals.", spread)),
    el("div", { class: "grid one" }, card("Distribution of the residuals", null, counts), card("Largest errors, test set", null, el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "row"), el("th", { class: "number" }, "actual"), el("th", { class: "number" }, "predicted"), worst.columns.map((name) => el("th", {}, elide(name, 16))))),
      el("tbody", {}, worst.rows.map((row) => el("tr", {}, el("td", {}, elide(row.row, 20)), el("td", { class: "number" }, num(row.actual, 4)), el("td", { class: "number" }, num(row.predicted, 4)), row.cells.map((cell) => el("td", { class: "faint" }, cell))))))))),
  ];
};

// ---- learning curves --------------------------------------------------------------------------------------------------------
drawers.learning = (section) => {
  const colours = ["var(--class-0)", "var(--class-1)", "var(--class-2)"];
  const points = section.curves.flatMap((curve, c) => curve.sizes.map((size, k) => ({ size, name: curve.name, colour: colours[c], held_out: curve.mean[k], training: curve.training[k], folds: curve.held_out[k].filter((v) => v !== null) })));
  const known = points.filter((p) => p.held_out !== null), sizes = d3.greatest(section.curves, (curve) => curve.sizes.length * 1e9 + d3.max(curve.sizes)).sizes;
  const draw = chart("Learning curves", (width) => plot(width, { height: 320, x: { type: "log", label: "training rows", labelAnchor: "center", labelArrow: "none", ticks: sizes.filter((s, k) => width > 560 || k % 2 === 0), tickFormat: (v) => whole(v) }, y: { label: null, ticks: 6, tickFormat: tick, nice: true }, color: { type: "identity" }, marks: [
    grid_y({ ticks: 6 }), Plot.ruleX(known, { x: "size", y1: (p) => d3.min(p.folds), y2: (p) => d3.max(p.folds), stroke: "colour", strokeWidth: 1.4, strokeOpacity: 0.6 }),
    Plot.line(points.filter((p) => p.training !== null), { x: "size", y: "training", z: "name", stroke: "colour", strokeWidth: 1.4, strokeDasharray: "4 4" }),
    Plot.line(known, { x: "size", y: "held_out", z: "name", stroke: "colour", strokeWidth: 2.4 }), Plot.dot(known, { x: "size", y: "held_out", fill: "colour", r: 4, stroke: "var(--card)", strokeWidth: 1.5 }),
    Plot.tip(known, Plot.pointer({ ...TIP, x: "size", y: "held_out", title: (p) => `${p.name}, ${plural(p.size, "row")}\nheld out ${num(p.held_out, 3)}\ntraining ${num(p.training, 3)}` })) ] }));
  const short = section.curves.filter((curve) => d3.max(curve.sizes) < section.n_rows).map((curve) => curve.name), all = `all ${plural(section.n_rows, "row")}`;
  const notes = `${short.length ? ` To save time ${short.join(", ")} ${short.length === 1 ? "is" : "are"} not fitted to ${all}.` : ""}${section.curves.some((curve) => curve.name === section.best) ? "" : ` ${section.best} would take too long here.`}`;
  return [card(`${section.metric}${section.is_loss ? ", lower is better" : ", higher is better"}`, `Solid lines: held-out rows; dashed lines: training rows; bars: range over the folds.${notes}`, legend(section.curves.map((curve, c) => [colours[c], curve.name, "line"])), draw)];
};

// ---- outliers and drift ------------------------------------------------------------------------------------------------------
drawers.reliability = (section) => {
  const overall = d3.sum(section.segments, (s) => s.held_out * s.n) / Math.max(1, d3.sum(section.segments, (s) => s.n));
  return [
    section.segments.length > 1 ? card("Segments with large errors", `Leaves of a small tree fitted to the losses of held-out rows; the mean ${section.loss} of all rows is ${num(overall, 3)}.`, segments_table(section.segments, overall)) : null,
    el("div", { class: "grid" }, outliers_card(section), drift_card(section)),
    section.out_of_range.length ? card("Values outside the training range", "Numbers of test rows with a value below or above all training rows, an unseen category, or a missing value in a column without any in training. Trees extrapolate as constants.", range_table(section.out_of_range)) : null,
  ].filter(Boolean);
};

function segments_table(segments, overall) {
  const most = Math.max(...segments.map((p) => Math.max(p.held_out, p.test ?? 0)), 1e-12);
  const meter = (value, colour) => (value === null ? "–" : el("div", { class: "meter" }, el("span", { style: { width: `${(100 * value) / most}%`, background: colour } }), el("b", {}, num(value, 3))));
  const texts = shares(segments.map((p) => p.fraction));
  return el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, ["Segment", "Training rows", "Loss, held-out rows", "Loss, test set", "Test rows"].map((w) => el("th", { scope: "col" }, w)))), el("tbody", {}, segments.map((p, k) => el("tr", {},
    el("td", { class: "name rule" }, p.rule.join(" and "), " ", p.held_out > 1.5 * overall ? el("span", { class: "tag warn" }, "large") : null), el("td", { class: "number" }, `${whole(p.n)} · ${texts[k]}`), el("td", { class: "wide" }, meter(p.held_out, "var(--cv)")), el("td", { class: "wide" }, meter(p.test, "var(--test)")), el("td", { class: "number" }, whole(p.n_test)))))));
}

function outliers_card(section) {
  const outliers = section.outliers, fraction = outliers.n_outliers / outliers.n, many = fraction > 3 * outliers.expected && outliers.n_outliers > 5;
  return card("Outliers", "Test rows that are more isolated than 99 % of the training rows (isolation forest).", el("div", { class: "figures" },
    figure("outliers", whole(outliers.n_outliers), [`${pct(fraction, 1)} of ${plural(outliers.n, "test row")} `, many ? el("span", { class: "tag warn" }, "many") : el("span", { class: "tag good" }, "as expected")]),
    figure("mean loss of outliers", num(outliers.loss_outliers, 3)), figure("mean loss of other rows", num(outliers.loss_others, 3))),
    outliers.rows.length ? el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "row"), outliers.columns.map((name) => el("th", {}, elide(name, 16))))), el("tbody", {}, outliers.rows.map((row) => el("tr", {}, el("td", {}, elide(row.row, 20)), row.cells.map((cell) => el("td", { class: "faint" }, cell))))))) : null);
}

function drift_card(section) {
  const classifier = section.drift_classifier, differs = classifier.roc_auc - 1.96 * classifier.error > 0.5;
  const rows = section.drift.columns.map((d, k) => ({ ...d, k })), n = section.drift.n_columns;
  const draw = rows.length ? chart("Columns that differ between training and test rows", (width) => {
    const margin = name_margin(rows.map((r) => r.name), width);
    return plot(width, { height: 40 + 28 * rows.length, marginLeft: margin, marginTop: 6, marginBottom: 40, x: { label: "distance between the distributions", labelAnchor: "center", labelArrow: "none", ticks: 5, tickFormat: tick, zero: true }, y: { domain: rows.map((r) => r.k), tickFormat: (k) => fit_name(rows[k].name, margin), tickSize: 0, label: null }, marks: [
      grid_x({ ticks: 5 }), Plot.barX(rows, { x: "distance", y: "k", fill: "var(--test)", fillOpacity: 0.85, insetTop: 5, insetBottom: 5, rx2: 3 }),
      Plot.tip(rows, Plot.pointerY({ ...TIP, x: "distance", y: "k", title: (r) => `${r.name}\ndistance ${num(r.distance, 2)}, p ${r.p < 0.001 ? "<0.001" : num(r.p, 2)} (Holm)` })) ] });
  }) : el("p", {}, n === 1 ? "The column does not differ significantly." : `None of the ${whole(n)} columns differs significantly.`);
  return card("Drift between training and test set", "Columns whose distributions differ at the level 5 %, with Holm's correction for all columns: Kolmogorov-Smirnov distance; of categories, total variation and the chi-squared test.", el("div", { class: "figures" },
    figure("ROC AUC of a drift classifier", fixed(classifier.roc_auc, 2), [`training against test rows, 0.5 is chance `, differs ? el("span", { class: "tag warn" }, "drift") : el("span", { class: "tag good" }, "no drift")])), draw);
}

function range_table(entries) {
  return el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, ["Column", "Test rows", "Below", "Above", "Unseen", "Missing"].map((w, k) => el("th", { scope: "col", class: k ? "number" : null }, w)))), el("tbody", {}, entries.map((e) => el("tr", {}, el("td", { class: "name" }, e.name), el("td", { class: "number" }, whole(e.n)), [e.below, e.above, e.unseen, e.missing].map((n) => el("td", { class: "number faint" }, n ? whole(n) : "–")))))));
}

// ---- reproducibility ---------------------------------------------------------------------------------------------------------
drawers.reproduce = (section) => [
  el("div", { class: "grid" }, card("Notes", null, el("ul", { class: "notes" }, section.notes.map((note) => el("li", {}, note)))),
    card("Reproduce this study", `It took ${seconds(section.seconds)}, with ${section.folds}. The same call gives the same result.`, el("pre", { tabindex: 0 }, section.command ? `$ ${section.command}\n\n` : "", section.code),
      el("p", { class: "note", style: { margin: "12px 0 0" } }, Object.entries(section.versions).map(([name, version]) => `${name} ${version}`).join(" · ")))),
];
