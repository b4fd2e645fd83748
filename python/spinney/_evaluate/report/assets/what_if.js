// What if: a row is changed, and the trees of the model are evaluated in the page.
function parsed_model(section) {
  const trees = section.trees.map((tree) => ({ ...tree, threshold: tree.threshold.split(" ").map(Number), codes: Object.fromEntries(Object.entries(tree.codes).map(([node, codes]) => [node, new Set(codes)])) }));
  return { ...section, trees, start: section.start.map(Number) };
}
function parsed_row(texts) { return texts.map((text) => (text === "" ? NaN : Number(text))); }

function leaf_of(tree, row) {
  let node = 0;
  while (tree.feature[node] >= 0) {
    const value = row[tree.feature[node]], codes = tree.codes[node];
    const left = Number.isNaN(value) ? tree.missing[node] === "1" : codes ? codes.has(value) : value <= tree.threshold[node];
    node = left ? node + 1 : tree.right[node];
  }
  return tree.value[node];
}
// The prediction: a number in a list, or class probabilities.
function predicted(model, row) {
  if (!model.n_scores) {
    const sums = [];
    for (const tree of model.trees) [leaf_of(tree, row)].flat().forEach((value, k) => { sums[k] = (sums[k] ?? 0) + value; });
    const means = sums.map((sum) => sum / model.trees.length);
    return model.classes && means.length === 1 ? [1 - means[0], means[0]] : means;
  }
  const scores = [...model.start];
  model.trees.forEach((tree, t) => { scores[t % model.n_scores] += [leaf_of(tree, row)].flat()[0]; });
  if (model.link === "log") return scores.map(Math.exp);
  if (model.link === "logit") return [1 / (1 + Math.exp(scores[0])), 1 / (1 + Math.exp(-scores[0]))];
  if (model.link !== "softmax") return scores;
  const most = Math.max(...scores), sizes = scores.map((score) => Math.exp(score - most)), sum = sizes.reduce((a, b) => a + b, 0);
  return sizes.map((size) => size / sum);
}
// Sampled Shapley values of an output: columns take their values one by one, in orders that differ by background row, each
// also reversed. They add up to the prediction less the mean of the background. The last is that of all other columns.
const ORDERS = 6;
function sampled_shapley(model, row, background, columns, output) {
  const shown = new Set(columns), others = row.map((_, j) => j).filter((j) => !shown.has(j)), players = [...columns.map((j) => [j]), others];
  const sums = players.map(() => 0);
  let state = 12345, base = 0;
  const random = () => { state = (1103515245 * state + 12345) % 2147483648; return state / 2147483648; };
  for (const from of background) {
    base += predicted(model, from)[output] / background.length;
    for (let pass = 0; pass < ORDERS / 2; pass++) {
      const order = players.map((_, k) => k);
      for (let k = order.length - 1; k > 0; k--) { const other = Math.floor(random() * (k + 1)); [order[k], order[other]] = [order[other], order[k]]; }
      for (const one of [order, [...order].reverse()]) {
        const now = [...from];
        let before = predicted(model, now)[output];
        for (const player of one) {
          for (const j of players[player]) now[j] = row[j];
          const after = predicted(model, now)[output];
          sums[player] += after - before;
          before = after;
        }
      }
    }
  }
  return { base, values: sums.map((sum) => sum / (background.length * ORDERS)) };
}

drawers.what_if = (section) => {
  const model = parsed_model(section), background = section.background.map(parsed_row), columns = section.inputs.map((input) => input.column);
  let at = 0, output = section.classes === null ? 0 : section.classes.length - 1, row = parsed_row(section.values[0]);
  const fields = el("div", { class: "what-if-fields", id: "what-if-fields" }), figures = el("div", { class: "figures", id: "what-if-figures" });
  const show = (value) => (section.classes === null ? num(value, 4) : pct(value, 1));
  const bars = chart("Contributions of the columns to the prediction", (width) => what_if_chart(section, sampled_shapley(model, row, background, columns, output), show, width));
  function update() {
    const now = predicted(model, row)[output], first = predicted(model, parsed_row(section.values[at]))[output];
    figures.replaceChildren(
      figure(section.classes === null ? "prediction" : `probability of ${section.classes[output]}`, show(now), now === first ? "the row as it is" : `${show(first)} for the row as it is`),
      figure("actual", section.actual[at], `row ${section.rows[at]}`));
    if (bars.isConnected) bars.redraw();
  }
  const fill = () => fields.replaceChildren(...section.inputs.map((input) => what_if_field(input, row, update)));
  const start = (value) => { at = Number(value); row = parsed_row(section.values[at]); fill(); update(); };
  const pickers = el("div", { class: "bar no-print" },
    select("Start from row", section.rows.map((name, k) => [k, elide(name, 24)]), at, start),
    section.classes !== null ? select("Class", section.classes.map((name, k) => [k, name]), output, (value) => { output = Number(value); update(); }) : null,
    button("Reset", () => start(at)));
  fill();
  update();
  const instead = section.is_best ? "" : ` ${section.best} cannot be evaluated in this page: its trees are too many, or it is not made of trees.`;
  return [card(`Change a row: ${section.model}`, `Predictions of ${section.model}, fitted to the training rows and before calibration, are computed in this page.${instead} ${section.rows_note}`, pickers, figures,
    el("div", { class: "grid" }, fields, captioned(`Contributions relative to ${plural(background.length, "test row")} (sampled Shapley values)`, bars)))];
};

function what_if_field(input, row, update) {
  const set = (value) => { row[input.column] = value; update(); };
  const value = row[input.column], name = elide(input.name, 28);
  if (input.categories !== null) {
    const known = Number.isNaN(value) || value < input.categories.length;
    const options = [...input.categories.map((words, code) => [code, words]), ["", "missing"], ...(known ? [] : [[value, "another"]])];
    return select(name, options, Number.isNaN(value) ? "" : value, (chosen) => set(chosen === "" ? NaN : Number(chosen)));
  }
  const step = input.is_whole ? 1 : "any", box = el("input", { type: "number", step, value: Number.isNaN(value) ? null : value, placeholder: "missing", "aria-label": `Value of ${input.name}` });
  const slider = range(input.name, input.low, input.high, input.is_whole ? 1 : (input.high - input.low) / 500 || 1, Number.isNaN(value) ? input.low : value, (chosen) => { box.value = Number(chosen.toPrecision(6)); set(chosen); });
  box.addEventListener("input", () => { const typed = box.value === "" ? NaN : Number(box.value); if (!Number.isNaN(typed)) { slider.value = typed; slider.refill(); } set(typed); });
  return el("div", { class: "field" }, name, el("div", { class: "bar" }, slider, box));
}

function what_if_chart(section, found, show, width) {
  const names = [...section.inputs.map((input) => input.name), "other columns"], margin = name_margin(names, width);
  const rows = found.values.map((value, k) => ({ value, name: names[k], k })).filter((one) => one.k < section.inputs.length || one.value !== 0);
  rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return plot(width, { height: 60 + 28 * rows.length, marginLeft: margin, marginTop: 6, x: { label: `mean of the other rows ${show(found.base)}`, labelAnchor: "center", labelArrow: "none", ticks: 5, tickFormat: tick }, y: { domain: rows.map((one) => one.k), tickFormat: (k) => fit_name(names[k], margin), tickSize: 0, label: null }, marks: [
    grid_x({ ticks: 5 }), Plot.barX(rows, { x: "value", y: "k", fill: (one) => (one.value < 0 ? "var(--low)" : "var(--high)"), insetTop: 5, insetBottom: 5 }), Plot.ruleX([0], { stroke: "var(--ink-3)" }),
    Plot.tip(rows, Plot.pointerY({ ...TIP, x: "value", y: "k", title: (one) => `${one.name}\n${num(one.value, 3)}` })) ] });
}
