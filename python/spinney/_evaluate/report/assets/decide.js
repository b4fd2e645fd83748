// Probabilities and decisions: calibration, ROC, precision and recall, and what two kinds of errors cost.
drawers.decide = (found) => {
  let at = found.classes.length - 1, rows = "test", cost = 0;
  if (found.classes.length > 1) at = 0;
  const now = () => found.classes[at][rows];
  const state = () => best_threshold(found.classes[at].folds, cost);
  const charts = [
    chart("ROC curve", (width) => roc_chart(now(), state(), width)),
    chart("Precision and recall", (width) => recall_chart(now(), state(), width)),
    chart("Calibration", (width) => calibration_chart(found.classes[at], width)),
    chart("Probabilities of rows of the class and of others", (width) => share_chart(now(), state(), width)),
    chart("Cost by threshold", (width) => cost_chart(now(), state(), cost, width)),
  ];
  const figures = el("div", { class: "figures", id: "cost-figures" }), matrix = el("div", { class: "scroll", id: "cost-matrix" });
  const ratio = el("b", { id: "cost-ratio" }), areas = el("div", { class: "figures" });
  const slider = range("Cost of a miss against that of a false alarm", -40, 40, 1, 0, (value) => { cost = value / 10; tell(); });
  slider.id = "cost-slider";
  function tell() {
    const part = now(), chosen = state(), name = elide(found.classes[at].name, 24);
    ratio.replaceChildren(cost_words(cost, name));
    slider.setAttribute("aria-valuetext", cost_words(cost, name));
    const counts = counts_at(part, chosen.threshold), total = part.n_yes + part.n_no, price = prices(cost);
    const paid = (price.miss * counts.missed + price.alarm * counts.alarms) / total;
    const never = (price.miss * part.n_yes) / total, always = (price.alarm * part.n_no) / total, simple = Math.min(never, always);
    figures.replaceChildren(
      figure("threshold", chosen.threshold > 1 ? "above all" : fixed(chosen.threshold, 3), "lowest cost on held-out folds"),
      figure(`called ${name}`, pct((counts.hits + counts.alarms) / total, 1), `${whole(counts.hits + counts.alarms)} of ${plural(total, "row")}`),
      figure("found", pct(part.n_yes ? counts.hits / part.n_yes : null, 1), `of the ${name} rows`), figure("right when called", counts.hits + counts.alarms ? pct(counts.hits / (counts.hits + counts.alarms), 1) : "–"),
      figure("cost per 100 rows", num(100 * paid, 3), simple > 0 ? `${pct(1 - paid / simple)} below ${never <= always ? "never" : "always"} calling it` : null));
    matrix.replaceChildren(two_by_two(counts, part, name));
    areas.replaceChildren(figure("area under the ROC curve", fixed(part.area, 3), part.area_error === null ? null : `± ${fixed(part.area_error, 3)}`), figure("average precision", fixed(part.precision, 3), `${fixed(part.n_yes / total, 3)} by chance`), figure("Brier score", fixed(part.brier, 4), "mean squared miss"));
    for (const host of charts) if (host.isConnected) host.redraw();
  }
  tell();
  const pickers = el("div", { class: "bar" },
    found.classes.length > 1 ? select("Class", found.classes.map((c, k) => [k, c.name]), at, (value) => { at = Number(value); tell(); }) : null,
    select("Judged on", [["test", "test rows"], ["folds", "rows held out in folds"]], rows, (value) => { rows = value; tell(); }));
  return [
    card(`What should a mistake cost?`, `The threshold is the one of least cost on the rows held out in folds; all else shows what it does to the rows chosen here. Probabilities are those of ${found.model}.`,
      pickers, el("p", { class: "cost-line" }, ratio), el("div", { class: "ends no-print" }, el("span", {}, "false alarms cost more"), slider, el("span", {}, "misses cost more")), figures,
      el("div", { class: "grid three" }, captioned("Decisions", matrix), captioned("Cost per 100 rows by threshold", charts[4]), captioned("What is said of rows of the class, and of others", charts[3]))),
    card("How well the classes are told apart", null, areas, el("div", { class: "grid three" }, captioned("ROC: rows found against false alarms", charts[0]), captioned("Precision against recall", charts[1]),
      captioned("Calibration: what is said against what came", charts[2]))),
    el("div", { class: found.confusion.classes.length > 5 ? "grid one" : "grid stack-in-print" }, confusion_card(found), surprise_card(found)),
  ];
};

function captioned(words, host) { return el("div", {}, el("h3", {}, words), host); }

function prices(cost) {  // of a miss and of a false alarm; the slider goes by powers of two up to sixteen
  return cost >= 0 ? { miss: 2 ** cost, alarm: 1 } : { miss: 1, alarm: 2 ** -cost };
}
function cost_words(cost, name) {
  const price = prices(cost), times = num(Math.max(price.miss, price.alarm), 2);
  if (cost === 0) return `A missed “${name}” costs as much as a false alarm.`;
  return cost > 0 ? `A missed “${name}” costs as much as ${times} false alarms.` : `A false alarm costs as much as ${times} missed “${name}”.`;
}
function best_threshold(part, cost) {
  const price = prices(cost);
  const paid = part.threshold.map((t, k) => price.miss * (part.n_yes - part.hits[k]) + price.alarm * part.alarms[k]);
  const k = d3.minIndex(paid);
  const below = part.threshold[k + 1];
  return { threshold: k === 0 ? 1.01 : below === undefined ? part.threshold[k] : (part.threshold[k] + below) / 2 };
}
function index_at(part, threshold) {
  return Math.max(0, d3.bisector((t) => -t).right(part.threshold, -threshold) - 1);
}
function counts_at(part, threshold) {
  const k = index_at(part, threshold), hits = part.hits[k], alarms = part.alarms[k];
  return { hits, alarms, missed: part.n_yes - hits, rest: part.n_no - alarms };
}

function two_by_two(counts, part, name) {
  const total = part.n_yes + part.n_no;
  const cell = (count, of, colour) => el("td", { class: "heat", style: { background: tint(colour, of ? 0.9 * (count / of) : 0) } }, el("b", {}, whole(count)), el("div", {}, pct(count / total, 1)));
  return el("table", { class: "matrix" }, el("thead", {}, el("tr", {}, el("th", {}, ""), el("th", { scope: "col" }, `called ${name}`), el("th", { scope: "col" }, "not called"))), el("tbody", {},
    el("tr", {}, el("th", { scope: "row" }, `is ${name}`), cell(counts.hits, part.n_yes, "var(--accent)"), cell(counts.missed, part.n_yes, "var(--high)")),
    el("tr", {}, el("th", { scope: "row" }, "is not"), cell(counts.alarms, part.n_no, "var(--high)"), cell(counts.rest, part.n_no, "var(--accent)"))));
}

// ---- curves ---------------------------------------------------------------------------------------------------------------
const UNIT = { domain: [0, 1], ticks: 5, label: null, tickFormat: tick };
function square(width) { return Math.round(Math.min(300, Math.max(220, width * 0.82))); }

function roc_chart(part, chosen, width) {
  const points = part.threshold.map((t, k) => ({ t, x: part.n_no ? part.alarms[k] / part.n_no : 0, y: part.n_yes ? part.hits[k] / part.n_yes : 0 }));
  const here = points[index_at(part, chosen.threshold)];
  return plot(width, { height: square(width), marginLeft: 40, x: { ...UNIT, label: "share of others called", labelAnchor: "center", labelArrow: "none" }, y: UNIT, marks: [
    grid_x({ ticks: 5 }), grid_y({ ticks: 5 }), Plot.line([[0, 0], [1, 1]], { stroke: "var(--line-2)", strokeDasharray: "3 4" }),
    Plot.areaY(points, { x: "x", y1: 0, y2: "y", fill: "var(--accent)", fillOpacity: 0.08 }), Plot.line(points, { x: "x", y: "y", stroke: "var(--accent)", strokeWidth: 2.2 }),
    Plot.dot([here], { x: "x", y: "y", r: 6, fill: "var(--test)", stroke: "var(--card)", strokeWidth: 2 }),
    Plot.tip(points, Plot.pointer({ ...TIP, x: "x", y: "y", title: (p) => `threshold ${fixed(p.t, 3)}\nfound ${pct(p.y, 1)}\nfalse alarms ${pct(p.x, 1)}` })) ] });
}

function recall_chart(part, chosen, width) {
  const points = part.threshold.map((t, k) => ({ t, x: part.n_yes ? part.hits[k] / part.n_yes : 0, y: part.hits[k] + part.alarms[k] ? part.hits[k] / (part.hits[k] + part.alarms[k]) : null })).filter((p) => p.y !== null);
  const at = counts_at(part, chosen.threshold), called = at.hits + at.alarms;
  const here = called ? [{ x: at.hits / Math.max(1, part.n_yes), y: at.hits / called }] : [];
  const chance = part.n_yes / (part.n_yes + part.n_no);
  return plot(width, { height: square(width), marginLeft: 40, x: { ...UNIT, label: "share of the class found", labelAnchor: "center", labelArrow: "none" }, y: UNIT, marks: [
    grid_x({ ticks: 5 }), grid_y({ ticks: 5 }), Plot.ruleY([chance], { stroke: "var(--line-2)", strokeDasharray: "3 4", strokeWidth: 1.5 }),
    Plot.line(points, { x: "x", y: "y", stroke: "var(--accent)", strokeWidth: 2.2 }), Plot.dot(here, { x: "x", y: "y", r: 6, fill: "var(--test)", stroke: "var(--card)", strokeWidth: 2 }),
    Plot.tip(points, Plot.pointer({ ...TIP, x: "x", y: "y", title: (p) => `threshold ${fixed(p.t, 3)}\nfound ${pct(p.x, 1)}\nright when called ${pct(p.y, 1)}` })) ] });
}

function calibration_chart(of, width) {
  const parts = [["folds", "var(--cv)"], ["test", "var(--test)"]];
  const bins = parts.flatMap(([name, colour]) => of[name].bins.map((bin) => ({ ...bin, name, colour })));
  const words = legend([["var(--cv)", "rows held out in folds", "line"], ["var(--test)", "test rows", "line"]]);
  return el("div", {}, plot(width, { height: square(width), marginLeft: 40, x: { ...UNIT, label: "probability said", labelAnchor: "center", labelArrow: "none" }, y: UNIT, color: { type: "identity" }, marks: [
    grid_x({ ticks: 5 }), grid_y({ ticks: 5 }), Plot.line([[0, 0], [1, 1]], { stroke: "var(--line-2)", strokeDasharray: "3 4" }),
    Plot.ruleX(bins, { x: "said", y1: "low", y2: "high", stroke: "colour", strokeWidth: 1.4, strokeOpacity: 0.6 }),
    Plot.line(bins, { x: "said", y: "came", z: "name", stroke: "colour", strokeWidth: 1.6 }), Plot.dot(bins, { x: "said", y: "came", fill: "colour", r: 3.6 }),
    Plot.tip(bins, Plot.pointer({ ...TIP, x: "said", y: "came", title: (b) => `${b.name === "test" ? "test rows" : "rows held out in folds"}\nsaid ${pct(b.said, 1)}, came ${pct(b.came, 1)}\n${plural(b.n, "row")}` })) ] }), words);
}

function share_chart(part, chosen, width) {
  const step = 1 / part.bars[0].length, kinds = [["var(--accent)", "rows of the class", part.bars[0], 1], ["var(--train)", "other rows", part.bars[1], -1]];
  const bars = kinds.flatMap(([colour, name, counts, sign]) => counts.map((n, k) => ({ colour, name, n, x1: k * step, x2: (k + 1) * step, y: (sign * n) / Math.max(1, d3.max(counts)) })));
  const picture = plot(width, { height: 190, marginLeft: 10, marginRight: 10, marginTop: 20, x: { ...UNIT, label: "probability said", labelAnchor: "center", labelArrow: "none" }, y: { axis: null, domain: [-1, 1] }, color: { type: "identity" }, marks: [
    Plot.rect(bars, { x1: "x1", x2: "x2", y1: 0, y2: "y", fill: "colour", insetLeft: 0.5, insetRight: 0.5 }), Plot.ruleY([0], { stroke: "var(--line-2)" }),
    Plot.ruleX([Math.min(1, chosen.threshold)], { stroke: "var(--test)", strokeWidth: 2 }), Plot.text([Math.min(1, chosen.threshold)], { x: (t) => t, frameAnchor: "top", dy: -12, text: () => "threshold", fill: "var(--test)", fontWeight: 600 }),
    Plot.tip(bars, Plot.pointerX({ ...TIP, x: (b) => (b.x1 + b.x2) / 2, y: "y", title: (b) => `${b.name}: ${plural(b.n, "row")}\nsaid ${pct(b.x1)} to ${pct(b.x2)}` })) ] });
  return el("div", {}, legend([["var(--accent)", "rows of the class"], ["var(--train)", "other rows"]]), picture);
}

function cost_chart(part, chosen, cost, width) {
  const price = prices(cost), total = part.n_yes + part.n_no;
  const points = part.threshold.map((t, k) => ({ t: Math.min(1, t), paid: (100 * (price.miss * (part.n_yes - part.hits[k]) + price.alarm * part.alarms[k])) / total }));
  const here = points[index_at(part, chosen.threshold)];
  return plot(width, { height: 190, marginLeft: 40, marginTop: 10, x: { ...UNIT, label: "threshold", labelAnchor: "center", labelArrow: "none" }, y: { label: null, ticks: 4, tickFormat: tick, zero: true }, marks: [
    grid_y({ ticks: 4 }), Plot.ruleX([Math.min(1, chosen.threshold)], { stroke: "var(--test)", strokeWidth: 2 }),
    Plot.line(points, { x: "t", y: "paid", stroke: "var(--accent)", strokeWidth: 2, curve: "step-before" }), Plot.dot([{ ...here, t: Math.min(1, chosen.threshold) }], { x: "t", y: "paid", r: 5, fill: "var(--test)", stroke: "var(--card)", strokeWidth: 2 }) ] });
}

// ---- all classes at once, and single rows ---------------------------------------------------------------------------------
function confusion_card(found) {
  const { classes, counts } = found.confusion;
  const names = classes.map((code) => elide(found.names[code], 16));
  const head = el("tr", {}, el("th", {}, "is ↓  said →"), names.map((name) => el("th", { scope: "col" }, name)), el("th", { class: "number", scope: "col" }, "found"));
  const body = counts.map((row, i) => {
    const n = d3.sum(row);
    return el("tr", {}, el("th", { scope: "row" }, names[i]), row.map((count, j) => el("td", { class: "heat", style: { background: tint(i === j ? "var(--accent)" : "var(--high)", n ? 0.9 * (count / n) : 0) } }, count ? whole(count) : "")), el("td", { class: "number" }, n ? pct(row[i] / n) : "–"));
  });
  const hidden = found.confusion.n_hidden ? ` ${plural(found.confusion.n_hidden, "rarer class", "rarer classes")} not shown.` : "";
  return card("Confusion, test rows", `Each row is given its most probable class.${hidden}`, el("div", { class: "scroll", tabindex: 0 }, el("table", { class: "matrix full" }, el("thead", {}, head), el("tbody", {}, body))));
}

function surprise_card(found) {
  const { rows, columns, n_wrong } = found.surprises;
  if (!rows.length) return card("Most surprising test rows", "The model tells every test row rightly.");
  return card("Most surprising test rows", `Of the ${plural(n_wrong, "test row")} told wrongly, those of which it was surest.`, el("div", { class: "scroll", tabindex: 0 }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", {}, "row"), el("th", {}, "is"), el("th", {}, "said"), columns.map((name) => el("th", {}, elide(name, 18))))),
    el("tbody", {}, rows.map((row) => el("tr", {}, el("td", {}, whole(row.row + 1)), el("td", {}, elide(row.is, 16)), el("td", { class: "together" }, `${elide(row.said, 16)} ${pct(row.share)}`), row.cells.map((cell) => el("td", { class: "faint together" }, cell))))))));
}
