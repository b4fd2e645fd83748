// The table, residuals, learning curves, where not to trust the model, and how it was made.

// ---- the table --------------------------------------------------------------------------------------------------------------
drawers.profile = (found) => {
  const has_notes = found.columns.some((column) => column.note || column.flags.length || !column.is_used);
  const body = el("tbody", {}), n = found.columns.length;
  const show = (words) => {
    const wanted = found.columns.filter((column) => column.name.toLowerCase().includes(words.toLowerCase()));
    body.replaceChildren(...wanted.map((column) => profile_row(column, has_notes)));
  };
  show("");
  const search = n > 12 ? el("label", { class: "field" }, "Find a column", el("input", { type: "search", oninput: (event) => show(event.target.value) })) : null;
  const head = ["Column", "Kind", "Missing", "Distinct", "Values in training rows", "Examples", ...(has_notes ? ["What was done"] : [])];
  return [
    el("div", { class: "grid wide-left" }, card(`The target: ${elide(found.target.name, 40)}`, `In ${plural(found.n_train, "training row")}; ${plural(found.n_test, "row")} more were kept for the test.`, target_chart(found.target)),
      card("The table", null, el("div", { class: "figures" }, figure("rows with a target", whole(found.n_rows)), figure("columns", whole(n + found.n_hidden)), figure("learned from", whole(found.n_used)),
        figure("with gaps", whole(found.columns.filter((column) => column.missing > 0).length))))),
    card("Columns", found.n_hidden ? `The first ${n} of ${whole(n + found.n_hidden)}.` : null, search ? el("div", { class: "bar" }, search) : null,
      el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Columns" }, el("table", {}, el("thead", {}, el("tr", {}, head.map((words) => el("th", { scope: "col" }, words)))), body))),
  ];
};

function profile_row(column, has_notes) {
  const tags = [column.is_used ? null : el("span", { class: "tag warn" }, "left out"), ...column.flags.map((word) => el("span", { class: word === "tells the target" ? "tag bad" : "tag" }, word))];
  return el("tr", {}, el("td", { class: "name" }, column.name), el("td", {}, column.kind),
    el("td", {}, column.missing > 0 ? [el("span", { class: "gap" }, el("span", { style: { width: `${Math.max(3, 100 * column.missing)}%` } })), ` ${pct(column.missing)}`] : el("span", { class: "faint" }, "none")),
    el("td", { class: "number" }, whole(column.distinct)), el("td", {}, column.bars ? spark(column.bars) : el("span", { class: "faint" }, "–")),
    el("td", { class: "faint" }, column.examples.join(", ")), has_notes ? el("td", {}, tags, column.note ? el("span", { class: "note" }, ` ${column.note}`) : null) : null);
}

function spark(bars) {
  const width = 132, height = 30, most = Math.max(...bars.counts, 1), step = width / bars.counts.length;
  const about = bars.words ? bars.words.map((word, k) => `${word}: ${whole(bars.counts[k])}`).join("\n") : `${bars.ends[0]} to ${bars.ends[1]}`;
  const svg = d3.create("svg").attr("width", width).attr("height", height).attr("role", "img").attr("aria-label", about);
  svg.append("title").text(about);
  svg.selectAll("rect").data(bars.counts).join("rect").attr("x", (d, k) => k * step + 0.5).attr("width", Math.max(1, Math.min(step - 1, 22))).attr("rx", 1.5)
    .attr("y", (d) => height - (height * d) / most).attr("height", (d) => (height * d) / most).style("fill", bars.words ? "var(--class-2)" : "var(--class-0)").attr("opacity", 0.85);
  return el("div", {}, svg.node(), bars.ends ? el("div", { class: "ends-of" }, el("span", {}, bars.ends[0]), el("span", {}, bars.ends[1])) : null);
}

function target_chart(target) {
  return chart("Values of the target", (width) => {
    if (target.edges) {
      const bars = target.counts.map((n, k) => ({ n, x1: target.edges[k], x2: target.edges[k + 1] }));
      return plot(width, { height: 190, x: { label: null, ticks: Math.min(7, width / 90), tickFormat: tick }, y: { label: null, ticks: 4, tickFormat: (v) => whole(v) }, marks: [grid_y({ ticks: 4 }), Plot.rectY(bars, { x1: "x1", x2: "x2", y: "n", fill: "var(--class-0)", fillOpacity: 0.85, insetLeft: 0.5, insetRight: 0.5 }), Plot.ruleY([0], { stroke: "var(--line-2)" })] });
    }
    const margin = name_margin(target.words, width), total = d3.sum(target.counts);
    const rows = target.words.map((words, k) => ({ k, words, n: target.counts[k], colour: class_colour(target.codes[k]) }));
    return plot(width, { height: 24 + 30 * rows.length, marginLeft: margin, marginRight: 64, marginTop: 4, marginBottom: 8, x: { axis: null }, y: { domain: rows.map((r) => r.k), tickFormat: (k) => fit_name(rows[k].words, margin), tickSize: 0, label: null }, color: { type: "identity" },
      marks: [Plot.barX(rows, { x: "n", y: "k", fill: "colour", insetTop: 4, insetBottom: 4, rx2: 3 }), Plot.text(rows, { x: "n", y: "k", text: (r) => `${whole(r.n)}  ${pct(r.n / total)}`, textAnchor: "start", dx: 6, fill: "var(--ink-2)" })] });
  });
}

// ---- residuals --------------------------------------------------------------------------------------------------------------
drawers.residuals = (found) => {
  const points = found.said.map((said, k) => ({ said, truth: found.truth[k], missed: found.truth[k] - said }));
  const span = d3.extent(points.flatMap((p) => [p.said, p.truth]));
  const against = chart("Values against predictions", (width) => plot(width, { height: 320, x: { domain: span, nice: true, label: "prediction", labelAnchor: "center", labelArrow: "none", ticks: Math.min(6, width / 80), tickFormat: tick }, y: { domain: span, nice: true, label: null, ticks: 6, tickFormat: tick }, marks: [
    grid_x({ ticks: 6 }), grid_y({ ticks: 6 }), Plot.line([[span[0], span[0]], [span[1], span[1]]], { stroke: "var(--ink-3)", strokeDasharray: "4 4" }),
    Plot.dot(points, { x: "said", y: "truth", r: 2.8, fill: "var(--class-0)", fillOpacity: 0.55 }), Plot.tip(points, Plot.pointer({ ...TIP, x: "said", y: "truth", title: (p) => `is ${num(p.truth, 4)}\nsaid ${num(p.said, 4)}\nmissed by ${num(p.missed, 3)}` })) ] }));
  const spread = chart("Residuals by prediction", (width) => plot(width, { height: 320, x: { label: "prediction", labelAnchor: "center", labelArrow: "none", ticks: Math.min(6, width / 80), tickFormat: tick }, y: { label: null, ticks: 6, tickFormat: tick }, marks: [
    grid_y({ ticks: 6 }), Plot.dot(points, { x: "said", y: "missed", r: 2, fill: "var(--ink-3)", fillOpacity: 0.35 }), Plot.ruleY([0], { stroke: "var(--ink-3)" }),
    Plot.areaY(found.bins, { x: "said", y1: "low", y2: "high", fill: "var(--class-0)", fillOpacity: 0.13, curve: "monotone-x" }), Plot.areaY(found.bins, { x: "said", y1: "lower", y2: "upper", fill: "var(--class-0)", fillOpacity: 0.22, curve: "monotone-x" }),
    Plot.line(found.bins, { x: "said", y: "middle", stroke: "var(--class-0)", strokeWidth: 2.2, curve: "monotone-x" }) ] }));
  const bars = found.bars.map((n, k) => ({ n, x1: found.edges[k], x2: found.edges[k + 1] }));
  const counts = chart("Distribution of the residuals", (width) => plot(width, { height: 220, x: { label: "value less prediction", labelAnchor: "center", labelArrow: "none", ticks: Math.min(6, width / 80), tickFormat: tick }, y: { label: null, ticks: 4, tickFormat: (v) => whole(v) }, marks: [grid_y({ ticks: 4 }), Plot.rectY(bars, { x1: "x1", x2: "x2", y: "n", fill: "var(--class-0)", fillOpacity: 0.8, insetLeft: 0.5, insetRight: 0.5 }), Plot.ruleX([0], { stroke: "var(--ink)", strokeDasharray: "3 3" })] }));
  const worst = found.worst;
  return [
    card(null, null, el("div", { class: "figures" }, figure("root mean squared error", num(found.rmse, 4)), figure("mean size of a miss", num(found.mean_miss, 4)), found.within.map((w) => figure(`${pct(w.share)} of the rows miss by less than`, num(w.miss, 3))), figure("mean residual", num(found.bias, 2), found.bias_error === null ? null : `± ${num(found.bias_error, 2)}`))),
    el("div", { class: "grid" }, card("Values against predictions", `${plural(points.length, "test row")} of ${whole(found.n)}; on the line the prediction is right.`, against), card("Residuals by prediction", "Median, middle half and middle nine tenths.", spread)),
    el("div", { class: "grid" }, card("How large the misses are", null, counts), card("Largest misses", null, el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "row"), el("th", { class: "number" }, "is"), el("th", { class: "number" }, "said"), worst.columns.map((name) => el("th", {}, elide(name, 16))))),
      el("tbody", {}, worst.rows.map((row) => el("tr", {}, el("td", {}, whole(row.row + 1)), el("td", { class: "number" }, num(row.is, 4)), el("td", { class: "number" }, num(row.said, 4)), row.cells.map((cell) => el("td", { class: "faint" }, cell))))))))),
  ];
};

// ---- learning curves --------------------------------------------------------------------------------------------------------
drawers.learning = (found) => {
  const colours = ["var(--class-0)", "var(--class-1)", "var(--class-2)"];
  const points = found.curves.flatMap((curve, c) => found.sizes.map((size, k) => ({ size, name: curve.name, colour: colours[c], held_out: curve.mean[k], learned: curve.learned[k], folds: curve.held_out[k].filter((v) => v !== null) })));
  const known = points.filter((p) => p.held_out !== null);
  const draw = chart("Learning curves", (width) => plot(width, { height: 320, x: { type: "log", label: "rows learned from", labelAnchor: "center", labelArrow: "none", ticks: found.sizes.filter((s, k) => width > 560 || k % 2 === 0), tickFormat: (v) => whole(v) }, y: { label: null, ticks: 6, tickFormat: tick, nice: true }, color: { type: "identity" }, marks: [
    grid_y({ ticks: 6 }), Plot.ruleX(known, { x: "size", y1: (p) => d3.min(p.folds), y2: (p) => d3.max(p.folds), stroke: "colour", strokeWidth: 1.4, strokeOpacity: 0.6 }),
    Plot.line(points.filter((p) => p.learned !== null), { x: "size", y: "learned", z: "name", stroke: "colour", strokeWidth: 1.4, strokeDasharray: "4 4" }),
    Plot.line(known, { x: "size", y: "held_out", z: "name", stroke: "colour", strokeWidth: 2.4 }), Plot.dot(known, { x: "size", y: "held_out", fill: "colour", r: 4, stroke: "var(--card)", strokeWidth: 1.5 }),
    Plot.tip(known, Plot.pointer({ ...TIP, x: "size", y: "held_out", title: (p) => `${p.name}, ${plural(p.size, "row")}\nheld out ${num(p.held_out, 3)}\nlearned ${num(p.learned, 3)}` })) ] }));
  const notes = found.curves.some((curve) => curve.name === found.best) ? "" : ` ${found.best} takes too long to be fitted so often here.`;
  return [card(`${found.metric}${found.is_loss ? ", lower is better" : ", higher is better"}`, `Whole lines are rows held out, dashed ones the rows learned from; bars reach from the worst to the best fold.${notes}`, legend(found.curves.map((curve, c) => [colours[c], curve.name, "line"])), draw)];
};

// ---- where not to trust it ---------------------------------------------------------------------------------------------------
drawers.trust = (found) => {
  const overall = d3.sum(found.parts, (p) => p.held_out * p.n) / Math.max(1, d3.sum(found.parts, (p) => p.n));
  return [
    found.parts.length > 1 ? card("Where it errs most", `Parts of the table found by a small tree on the losses of held-out rows; the mean ${found.loss} of all rows is ${num(overall, 3)}.`, parts_table(found.parts, overall)) : null,
    el("div", { class: "grid" }, odd_card(found), drift_card(found)),
    found.outside.length ? card("Values beyond what was learned from", "Test rows with a value below or above every training row, a category that did not occur, or a gap where there was none. Trees go on as at the edge.", outside_table(found.outside)) : null,
  ].filter(Boolean);
};

function parts_table(parts, overall) {
  const most = Math.max(...parts.map((p) => Math.max(p.held_out, p.test ?? 0)), 1e-12);
  const meter = (value, colour) => (value === null ? "–" : el("div", { class: "meter" }, el("span", { style: { width: `${(100 * value) / most}%`, background: colour } }), el("b", {}, num(value, 3))));
  return el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, ["Rows with", "Training rows", "Loss, held out", "Loss, test", "Test rows"].map((w) => el("th", { scope: "col" }, w)))), el("tbody", {}, parts.map((p) => el("tr", {},
    el("td", { class: "name" }, p.rule.join(" and "), " ", p.held_out > 1.5 * overall ? el("span", { class: "tag warn" }, "hard") : null), el("td", { class: "number" }, `${whole(p.n)} · ${pct(p.share)}`), el("td", { class: "wide" }, meter(p.held_out, "var(--cv)")), el("td", { class: "wide" }, meter(p.test, "var(--test)")), el("td", { class: "number" }, whole(p.n_test)))))));
}

function odd_card(found) {
  const odd = found.odd, share = odd.n_odd / odd.n, many = share > 3 * odd.expected && odd.n_odd > 5;
  return card("Rows unlike those learned from", "Rows that random cuts part from the training rows quickly, as they do one training row in a hundred.", el("div", { class: "figures" },
    figure("odd test rows", whole(odd.n_odd), [`${pct(share, 1)} of ${whole(odd.n)} `, many ? el("span", { class: "tag warn" }, "many") : el("span", { class: "tag good" }, "as expected")]),
    figure("mean loss on them", num(odd.loss_odd, 3)), figure("on the others", num(odd.loss_usual, 3))),
    odd.rows.length ? el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "row"), odd.columns.map((name) => el("th", {}, elide(name, 16))))), el("tbody", {}, odd.rows.map((row) => el("tr", {}, el("td", {}, whole(row.row + 1)), row.cells.map((cell) => el("td", { class: "faint" }, cell))))))) : null);
}

function drift_card(found) {
  const apart = found.told_apart, differs = apart.area - 1.96 * apart.error > 0.5;
  const rows = found.drift.map((d, k) => ({ ...d, k, is_far: d.distance > d.chance }));
  const draw = chart("Distance between training and test rows by column", (width) => {
    const margin = name_margin(rows.map((r) => r.name), width);
    return plot(width, { height: 40 + 24 * rows.length, marginLeft: margin, marginTop: 6, marginBottom: 40, x: { label: "largest gap between the distributions", labelAnchor: "center", labelArrow: "none", ticks: 5, tickFormat: tick, zero: true }, y: { domain: rows.map((r) => r.k), tickFormat: (k) => fit_name(rows[k].name, margin), tickSize: 0, label: null }, color: { type: "identity" }, marks: [
      grid_x({ ticks: 5 }), Plot.barX(rows, { x: "distance", y: "k", fill: (r) => (r.is_far ? "var(--test)" : "var(--train)"), fillOpacity: 0.85, insetTop: 5, insetBottom: 5, rx2: 3 }), Plot.tickX(rows, { x: "chance", y: "k", stroke: "var(--ink)", strokeWidth: 1.6 }),
      Plot.tip(rows, Plot.pointerY({ ...TIP, x: "distance", y: "k", title: (r) => `${r.name}\ndistance ${num(r.distance, 2)}, by chance up to ${num(r.chance, 2)}` })) ] });
  });
  return card("Drift between training and test rows", "Bars that pass their mark differ by more than chance; one in twenty does so by chance.", el("div", { class: "figures" },
    figure("told apart by a forest", fixed(apart.area, 2), [`area under the ROC curve, 0.5 is chance `, differs ? el("span", { class: "tag warn" }, "they differ") : el("span", { class: "tag good" }, "alike")])), draw);
}

function outside_table(entries) {
  return el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, ["Column", "Test rows", "Below", "Above", "Unseen", "Missing"].map((w, k) => el("th", { scope: "col", class: k ? "number" : null }, w)))), el("tbody", {}, entries.map((e) => el("tr", {}, el("td", { class: "name" }, e.name), el("td", { class: "number" }, whole(e.n)), [e.below, e.above, e.unseen, e.missing].map((n) => el("td", { class: "number faint" }, n ? whole(n) : "–")))))));
}

// ---- how it was made ---------------------------------------------------------------------------------------------------------
drawers.made = (found) => [
  el("div", { class: "grid" }, card("What was done, and why", null, el("ul", { class: "notes" }, found.notes.map((note) => el("li", {}, note)))),
    card("To make it again", `It took ${seconds(found.seconds)}, with ${plural(found.n_folds, "fold")}. The same call gives the same bits.`, el("pre", { tabindex: 0 }, found.command ? `$ ${found.command}\n\n` : "", found.code),
      el("p", { class: "note", style: { margin: "12px 0 0" } }, Object.entries(found.versions).map(([name, version]) => `${name} ${version}`).join(" · ")))),
];
