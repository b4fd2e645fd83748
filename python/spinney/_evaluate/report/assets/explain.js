// Explanations: feature importance, partial dependence, and SHAP values.
drawers.importances = (section) => {
  const draw = chart("Feature importance with 95 % intervals", (width) => importance_bars(section, width));
  if (!section.pairs) return [card(section.title, section.note, draw)];
  const pairs = chart("Strength of interactions with 95 % intervals", (width) => importance_bars({ unit: "Friedman's H", columns: section.pairs.pairs }, width, 0.46));
  return [el("div", { class: "grid" }, card(section.title, section.note, draw), card("Interactions", `Friedman's H of pairs of columns: 0, the effects are additive; 1, all of the effect is interaction. Model: ${section.pairs.model}; mean and 95 % interval of ${section.pairs.n_samples} samples of ${plural(section.pairs.n_rows, "test row")}.`, pairs))];
};

function importance_bars(section, width, most) {
  const margin = name_margin(section.columns.map((c) => c.name), width, most);
  const rows = section.columns.map((c, k) => ({ ...c, k, words: fit_name(c.name, margin) }));
  return plot(width, {
    height: 40 + 30 * rows.length, marginLeft: margin, marginTop: 6, marginBottom: 40,
    x: { label: section.unit, labelAnchor: "center", labelArrow: "none", ticks: Math.min(7, width / 90), tickFormat: tick },
    y: { domain: rows.map((r) => r.k), tickFormat: (k) => rows[k].words, tickSize: 0, label: null },
    marks: [
      grid_x({ ticks: Math.min(7, width / 90) }),
      Plot.barX(rows, { x: "value", y: "k", fill: "var(--accent)", fillOpacity: 0.8, insetTop: 5, insetBottom: 5, rx2: 3 }),
      Plot.ruleX([0], { stroke: "var(--line-2)" }),
      Plot.ruleY(rows.filter((r) => r.low !== null), { x1: "low", x2: "high", y: "k", stroke: "var(--ink)", strokeWidth: 1.6 }),
      Plot.tip(rows, Plot.pointerY({ ...TIP, x: "value", y: "k", title: (r) => `${r.name}\n${num(r.value, 3)}${r.low === null ? "" : `, ${num(r.low, 3)} to ${num(r.high, 3)}`}` })),
    ],
  });
}

// ---- partial dependence -------------------------------------------------------------------------------------------------
drawers.dependence = (section) => {
  let output = 0, centred = false;
  const charts = section.columns.map((column) => chart(`Partial dependence on ${column.name}`, (width) => dependence_chart(column, output, centred, width)));
  const redraw = () => charts.forEach((host) => host.redraw());
  const centre = button("Centre curves at 0", () => { centred = !centred; centre.setAttribute("aria-pressed", String(centred)); redraw(); }, { "aria-pressed": "false", id: "centre" });
  return [card(`${section.model}: mean ${section.of}`, `The thick line is the mean prediction over ${plural(section.n_rows, "test row")} when the column is set to each value; thin lines are single rows (ICE curves). Curves that are not parallel indicate interactions. Ticks: deciles of the column.${section.is_best ? "" : " The model that is kept would take too long here."}`,
    el("div", { class: "bar" }, section.outputs && section.outputs.length > 1 ? select("Class", section.outputs.map((name, k) => [k, name]), 0, (value) => { output = Number(value); redraw(); }) : null, centre),
    el("div", { class: "grid three" }, section.columns.map((column, k) => captioned(elide(column.name, 34), charts[k]))))];
};

function dependence_chart(column, output, centred, width) {
  const less = (values) => (centred ? values.map((value) => value - values[0]) : values);
  const at = column.at ?? d3.range(column.texts.length), average = less(column.average[output]);
  const mean = average.map((y, k) => ({ x: at[k], y, words: column.texts[k] }));
  const single = column.single[output].flatMap((curve, row) => less(curve).map((y, k) => ({ row, x: at[k], y })));
  const every = Math.max(1, Math.ceil(column.texts.length / Math.max(2, width / 64)));
  const room = Math.max(60, 14 + 9 * d3.max(at, (value) => (column.is_category ? 0 : text_near(column, Number(value.toPrecision(2))).length)));
  const x = column.is_category ? { domain: [-0.4, at.length - 0.6], ticks: at.filter((k) => k % every === 0), tickFormat: (k) => elide(column.texts[k] ?? "", 11), label: null }
    : { label: null, ticks: at.length <= 6 && !column.is_date ? at : Math.min(5, width / (column.is_date ? 100 : room)), tickFormat: (value) => text_near(column, value) };
  const thin = { stroke: "var(--ink-3)", strokeOpacity: 0.22, strokeWidth: 1 }, thick = { stroke: "var(--accent)", strokeWidth: 2.6 };
  return plot(width, { height: 210, marginLeft: 44, marginBottom: 30, marginTop: 10, x, y: { label: null, ticks: 5, tickFormat: tick }, marks: [
    grid_y({ ticks: 5 }), centred ? Plot.ruleY([0], { stroke: "var(--line-2)" }) : null,
    column.is_category ? Plot.dot(single, { x: (p) => p.x + ((p.row % 9) - 4) * 0.03, y: "y", r: 1.6, fill: "var(--ink-3)", fillOpacity: 0.35 }) : Plot.line(single, { x: "x", y: "y", z: "row", ...thin }),
    column.is_category ? null : Plot.line(mean, { x: "x", y: "y", ...thick }),
    column.is_category ? Plot.dot(mean, { x: "x", y: "y", r: 6, fill: "var(--accent)", stroke: "var(--card)", strokeWidth: 2 }) : null,
    column.deciles.length && !column.is_category ? Plot.tickX(column.deciles.filter((v) => v >= at[0] && v <= at[at.length - 1]), { x: (v) => v, stroke: "var(--ink-2)", insetTop: 172 - 12, strokeWidth: 1.2 }) : null,
    Plot.tip(mean, Plot.pointerX({ ...TIP, x: "x", y: "y", title: (p) => `${column.name} = ${p.words}\n${num(p.y, 3)}` })),
  ] });
}

// Dates are numbers on the axis; their texts belong to the grid points.
function text_near(column, value) {
  const k = d3.minIndex(column.at, (at) => Math.abs(at - value));
  return column.is_date ? elide(column.texts[k], 12) : value_tick(value, column.at[column.at.length - 1] - column.at[0]);
}

// ---- SHAP values --------------------------------------------------------------------------------------------------------
drawers.shap = (section) => {
  let output = section.outputs.length > 2 ? 0 : section.outputs.length - 1, row = 0;
  const swarm = chart("SHAP values: a point per row and column", (width) => beeswarm(section, output, row, width, pick));
  const fall = chart("SHAP values of one row", (width) => waterfall(section, output, row, width));
  const about = el("div", { class: "figures", id: "row-figures" });
  const list = el("select", { id: "row-picker", onchange: () => pick(Number(list.value)) }, section.rows.map((at, k) =>
    el("option", { value: k }, `row ${elide(at, 24)}: ${elide(section.actual[k], 24)}`)));
  const of = (part) => (part.name === null ? section.of : section.of.replace("of the class", `of ${elide(part.name, 20)}`));
  function pick(k) {
    row = Math.min(section.rows.length - 1, Math.max(0, k));
    list.value = row;
    update();
    if (swarm.isConnected) { swarm.redraw(); fall.redraw(); }
  }
  function update() {
    const part = section.outputs[output], total = total_of(part, row);
    const scale = section.response ? `${of(part)}: ` : "", ends = part.response && part.response[row].map((value) => response_text(section, value));
    const words = of(part) === "prediction" ? null : of(part);
    about.replaceChildren(figure("actual", elide(section.actual[row], 22)), figure(ends ? `predicted ${section.response}` : "prediction", ends ? ends[1] : num(total, 3), ends ? scale + num(total, 3) : words),
      figure(ends ? `base ${section.response}` : "base value", ends ? ends[0] : num(part.base[row], 3), ends ? scale + num(part.base[row], 3) : "mean prediction"));
  }
  update();
  const outputs = section.outputs.length > 1 ? select("Class", section.outputs.map((part, k) => [k, part.name]), output, (value) => { output = Number(value); update(); swarm.redraw(); fall.redraw(); }) : null;
  const controls = el("div", { class: "bar" }, el("label", { class: "field" }, "Test row", list), button("Previous", () => pick(row - 1)), button("Next", () => pick(row + 1)),
    button("Highest", () => pick(extreme(section, output, 1))), button("Lowest", () => pick(extreme(section, output, -1))));
  return [
    card(`SHAP values of ${plural(section.rows.length, "test row")}`, `Each point is a row: a positive SHAP value raises the ${section.outputs.length === 1 ? of(section.outputs[0]) : section.of}, a negative one lowers it. Click a point to explain its row.${section.is_best ? "" : ` The model is ${section.model}: the one that is kept would take too long here.`} ${section.note}`,
      el("div", { class: "bar" }, outputs, section.categories.includes(null) ? el("span", { class: "field" }, "numbers: low value", el("span", { class: "ramp" }), "high value") : null,
        section.colour.flat().includes(null) ? legend([["var(--missing)", "missing"]]) : null), swarm, category_legends(section)),
    card("SHAP values of one row", `From the base value to the prediction, column by column. ${section.rows_note}${section.response ? ` The axis is the ${section.outputs.length === 1 ? of(section.outputs[0]) : section.of}; the ${section.response} is in brackets.` : ""}`, controls, about, fall),
  ];
};

function response_text(section, value) { return section.response === "probability" ? pct(value, 1) : num(value, 4); }

function total_of(part, row) { return part.base[row] + d3.sum(part.values[row]) + part.rest[row]; }

function extreme(section, output, sign) {
  const part = section.outputs[output];
  return d3.maxIndex(section.rows, (at, k) => sign * total_of(part, k));
}

// Numbers are coloured from low to high; a few categories have a colour each, and many share one.
const MOST_CATEGORIES = 6;
function category_colour(names, k) { return names.length > MOST_CATEGORIES ? "var(--category-any)" : `var(--category-${k})`; }
function value_colour(level, names) {
  if (level === null) return "var(--missing)";
  return names ? category_colour(names, level) : `color-mix(in oklch, var(--high) ${Math.round(100 * level)}%, var(--low))`;
}
function category_legends(section) {
  return section.columns.map((column, j) => {
    const names = section.categories[j];
    if (!names || !names.length) return null;
    const entries = names.length > MOST_CATEGORIES ? [["var(--category-any)", plural(names.length, "category", "categories")]] : names.map((name, k) => [category_colour(names, k), name]);
    return el("div", { class: "categories" }, el("span", {}, elide(column, 40)), legend(entries));
  });
}

function beeswarm(section, output, row, width, pick) {
  const part = section.outputs[output], band = 34;
  const margin = name_margin(section.columns, width);
  const x = d3.scaleLinear(d3.extent(part.values.flat()), [margin, width - 16]).nice();
  const points = section.columns.flatMap((name, j) => swarm_of(part.values.map((values, k) => ({ k, j, name, value: values[j], colour: value_colour(section.colour[j][k], section.categories[j]), cell: section.cells[k][j] })), x, band));
  const chosen = points.filter((point) => point.k === row);
  const picture = plot(width, {
    height: 44 + band * section.columns.length, marginLeft: margin, marginTop: 6, marginBottom: 40,
    x: { domain: x.domain(), label: "SHAP value", labelAnchor: "center", labelArrow: "none", ticks: Math.min(8, width / 90), tickFormat: tick },
    y: { domain: [section.columns.length - 0.5, -0.5], ticks: d3.range(section.columns.length), tickFormat: (j) => fit_name(section.columns[j], margin), tickSize: 0, label: null },
    color: { type: "identity" },
    marks: [
      grid_x({ ticks: Math.min(8, width / 90) }), Plot.ruleX([0], { stroke: "var(--line-2)", strokeWidth: 1.5 }),
      Plot.dot(points, { x: "value", y: (p) => p.j + p.off, r: 2.7, fill: "colour", fillOpacity: 0.85 }),
      Plot.dot(chosen, { x: "value", y: (p) => p.j + p.off, r: 5.5, fill: "colour", stroke: "var(--ink)", strokeWidth: 1.8 }),
      Plot.tip(points, Plot.pointer({ ...TIP, x: "value", y: (p) => p.j + p.off, maxRadius: 30, title: (p) => `${p.name} = ${p.cell}\nSHAP value ${num(p.value, 3)}\nrow ${section.rows[p.k]}, ${section.actual[p.k]}` })),
    ],
  });
  picture.addEventListener("click", () => { if (picture.value) pick(picture.value.k); });
  picture.style.cursor = "pointer";
  return picture;
}

// Moves points of one column up and down where they are dense.
function swarm_of(points, x, band) {
  const bins = new Map(), step = 4.2;
  for (const point of points) {
    const bin = Math.round(x(point.value) / 4.5);
    const n = bins.get(bin) ?? 0;
    bins.set(bin, n + 1);
    point.up = (n % 2 ? 1 : -1) * Math.ceil(n / 2) * step;
  }
  const most = Math.max(...points.map((point) => Math.abs(point.up)), 1), squeeze = Math.min(1, (band * 0.42) / most);
  for (const point of points) point.off = (point.up * squeeze) / band;
  return points;
}

function waterfall(section, output, row, width) {
  const part = section.outputs[output], margin = name_margin(["base value", ...section.columns.map((name, j) => `${name} = ${section.cells[row][j]}`)], width, 0.46);
  const steps = section.columns.map((name, j) => ({ words: `${name} = ${section.cells[row][j]}`, adds: part.values[row][j] }));
  steps.sort((a, b) => Math.abs(b.adds) - Math.abs(a.adds));
  const shown = steps.slice(0, 10), others = d3.sum(steps.slice(10), (step) => step.adds) + part.rest[row], n_others = steps.length - shown.length + section.n_rest;
  if (n_others > 0) shown.push({ words: `${plural(n_others, "other column")}`, adds: others });
  let at = part.base[row];
  shown.reverse().forEach((step) => { step.from = at; at += step.adds; step.to = at; });
  shown.reverse().forEach((step, k) => { step.k = k; });
  const ends = [{ k: shown.length, value: part.base[row], words: "base value" }];
  const both = (value, end) => num(value, 3) + (part.response ? ` (${response_text(section, part.response[row][end])})` : "");
  const rows = [...shown.map((step) => step.words), ends[0].words];
  const span = d3.extent([...shown.flatMap((step) => [step.from, step.to]), part.base[row]]), pad = ((span[1] - span[0]) * 70) / Math.max(90, width - margin - 140) || 1;
  const decimals = decimals_for((span[1] - span[0]) / 10);
  return plot(width, {
    height: 40 + 28 * rows.length, marginLeft: margin, marginTop: 22, marginBottom: 30, marginRight: 26,
    x: { domain: [span[0] - pad, span[1] + pad], label: null, ticks: Math.min(6, width / 90), tickFormat: tick },
    y: { domain: d3.range(rows.length), tickFormat: (k) => fit_name(rows[k], margin), tickSize: 0, label: null },
    marks: [
      grid_x({ ticks: Math.min(6, width / 90) }),
      Plot.ruleX([at], { stroke: "var(--ink)", strokeDasharray: "3 3" }),
      Plot.text([at], { x: (v) => v, frameAnchor: "top", dy: -14, text: (v) => both(v, 1), fontWeight: 650, fill: "var(--ink)" }),
      Plot.ruleX([part.base[row]], { stroke: "var(--line-2)", strokeDasharray: "3 3" }),
      Plot.barX(shown, { x1: "from", x2: "to", y: "k", fill: (step) => (step.adds >= 0 ? "var(--high)" : "var(--low)"), insetTop: 4, insetBottom: 4, rx: 2 }),
      Plot.text(shown, { x: (step) => (step.adds >= 0 ? Math.max(step.from, step.to) : Math.min(step.from, step.to)), y: "k", text: (step) => signed(step.adds, decimals),
        dx: 5, textAnchor: "start", fill: "var(--ink-2)", filter: (step) => step.adds >= 0 }),
      Plot.text(shown, { x: (step) => Math.min(step.from, step.to), y: "k", text: (step) => signed(step.adds, decimals), dx: -5, textAnchor: "end", fill: "var(--ink-2)", filter: (step) => step.adds < 0 }),
      Plot.dot(ends, { x: "value", y: "k", fill: "var(--ink-3)", r: 4 }),
      Plot.text(ends, { x: "value", y: "k", text: (e) => both(e.value, 0), dx: 9, textAnchor: "start", fill: "var(--ink-2)" }),
    ],
  });
}
