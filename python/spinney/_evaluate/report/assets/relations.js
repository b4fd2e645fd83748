// Columns against the target and each other, and two models row by row.
drawers.associations = (section) => {
  let at = 0, output = section.outputs === null ? 0 : section.outputs.length - 1;
  const strengths = section.columns.map((column, k) => ({ name: column.name, value: column.strength, k })), pairs = section.pairs.map((pair, k) => ({ ...pair, k }));
  const bars = (rows, title, x, words) => chart(title, (width) => {
    const margin = name_margin(rows.map((one) => one.name), width);
    return plot(width, { height: 50 + 28 * rows.length, marginLeft: margin, marginTop: 6, x: { label: x, labelAnchor: "center", labelArrow: "none", ticks: 5, tickFormat: tick, zero: true }, y: { domain: rows.map((one) => one.k), tickFormat: (k) => fit_name(rows[k].name, margin), tickSize: 0, label: null }, marks: [
      grid_x({ ticks: 5 }), Plot.barX(rows, { x: "value", y: "k", fill: "var(--accent)", fillOpacity: 0.85, insetTop: 5, insetBottom: 5 }), Plot.ruleX([0], { stroke: "var(--line-2)" }),
      Plot.tip(rows, Plot.pointerY({ ...TIP, x: "value", y: "k", title: (one) => `${one.name}\n${words(one)}` })) ] });
  });
  const detail = chart("The target by the values of a column", (width) => association_chart(section, section.columns[at], output, width));
  const pickers = el("div", { class: "bar no-print" },
    select("Column", section.columns.map((column, k) => [k, elide(column.name, 28)]), at, (value) => { at = Number(value); detail.redraw(); }),
    section.outputs !== null && section.outputs.length > 1 ? select("Class", section.outputs.map((name, k) => [k, name]), output, (value) => { output = Number(value); detail.redraw(); }) : null);
  const equal = section.equal.map((names) => el("li", {}, `The same values in all rows: ${names.map((name) => elide(name, 30)).join(", ")}.`));
  const duplicates = section.n_duplicates ? `${plural(section.n_duplicates, "row")} of ${whole(section.n_rows)} repeat another one in all columns.` : `None of ${plural(section.n_rows, "row")} repeats another one in all columns.`;
  return [
    el("div", { class: "grid" },
      card("Each column alone and the target", `Fraction of the variance of the target that is between the values, or tenths of the rows, of a column, on ${plural(section.n_rows, "training row")}.`, bars(strengths, "Association of columns with the target", "explained by the column alone", (one) => pct(one.value, 1))),
      card("The target by the values of a column", "Means with 95 % intervals; the width of a dot is that of its number of rows.", pickers, detail)),
    el("div", { class: "grid" },
      card("Columns that go together", "Spearman's correlation of numbers and dates; Cramér's V of categories.", pairs.length ? bars(pairs, "Associations of pairs of columns", "association", (one) => `${one.measure === "Spearman" ? "Spearman's correlation" : "Cramér's V"} ${num(one.value, 2)}`) : el("p", {}, "No two columns have an association of 0.3 or more.")),
      card("Duplicates", null, el("ul", { class: "notes" }, equal.length ? equal : el("li", {}, "No two columns have the same values."), el("li", {}, duplicates)))),
  ];
};

function association_chart(section, column, output, width) {
  const bins = column.bins.map((bin, k) => ({ k, name: bin.name, n: bin.n, mean: bin.mean[output], low: bin.mean[output] - bin.reach[output], high: bin.mean[output] + bin.reach[output] }));
  const margin = name_margin(bins.map((bin) => bin.name), width), most = d3.max(bins, (bin) => bin.n);
  const words = section.outputs === null ? "mean of the target" : `fraction of ${elide(section.outputs[output], 24)}`;
  return plot(width, { height: 60 + 28 * bins.length, marginLeft: margin, marginTop: 6, x: { label: words, labelAnchor: "center", labelArrow: "none", ticks: 5, tickFormat: tick }, y: { domain: bins.map((bin) => bin.k), tickFormat: (k) => fit_name(bins[k].name, margin), tickSize: 0, label: null }, marks: [
    grid_x({ ticks: 5 }), Plot.ruleY(bins, { x1: "low", x2: "high", y: "k", stroke: "var(--cv)", strokeWidth: 1.6 }), Plot.dot(bins, { x: "mean", y: "k", r: (bin) => 2.5 + 5 * Math.sqrt(bin.n / most), fill: "var(--cv)" }),
    Plot.tip(bins, Plot.pointerY({ ...TIP, x: "mean", y: "k", title: (bin) => `${bin.name}: ${plural(bin.n, "row")}\n${words} ${num(bin.mean, 3)}` })) ] });
}

drawers.comparison = (section) => {
  let other = section.others[0];
  const figures = el("div", { class: "figures", id: "comparison-figures" }), table = el("div", { class: "scroll", tabindex: 0 });
  const draw = chart("Losses of test rows by two models", (width) => losses_chart(section, other, width));
  function update() {
    const ties = other.n - other.n_better - other.n_worse;
    figures.replaceChildren(
      figure(`${section.model} is better`, pct(other.n_better / other.n, 1), plural(other.n_better, "test row")),
      figure(`${other.name} is better`, pct(other.n_worse / other.n, 1), ties ? `${plural(other.n_worse, "test row")}; ${whole(ties)} equal` : plural(other.n_worse, "test row")),
      figure(`mean ${section.loss}, ${other.name} − ${section.model}`, signed(other.mean, decimals_for(other.high - other.low)), `95 % interval ${num(other.low, 3)} to ${num(other.high, 3)}`));
    const { rows, columns } = other.listed;
    table.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ["row", "actual", section.model, other.name, ...columns.map((name) => elide(name, 16))].map((words) => el("th", {}, words)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, el("td", {}, elide(row.row, 20)), el("td", {}, elide(row.actual, 16)), el("td", { class: "together" }, row.kept), el("td", { class: "together" }, row.other), row.cells.map((cell) => el("td", { class: "faint together" }, cell)))))));
    if (draw.isConnected) draw.redraw();
  }
  update();
  const picker = section.others.length > 1 ? el("div", { class: "bar no-print" }, select(`${section.model} and`, section.others.map((one, k) => [k, one.name]), 0, (value) => { other = section.others[Number(value)]; update(); })) : null;
  return [card("Losses on the test set", null, picker, figures, el("div", { class: "grid" }, captioned(`${section.loss} of each test row`, draw), captioned("Rows on which they differ most", table)))];
};

function losses_chart(section, other, width) {
  const points = other.losses[0].map((loss, k) => ({ x: loss, y: other.losses[1][k] })), most = d3.max(points, (p) => Math.max(p.x, p.y)) || 1;
  return plot(width, { height: square(width), x: { domain: [0, most], label: section.model, labelAnchor: "center", labelArrow: "none", ticks: 5, tickFormat: tick, type: "sqrt" }, y: { domain: [0, most], label: elide(other.name, 20), ticks: 5, tickFormat: tick, type: "sqrt" }, marks: [
    Plot.line([[0, 0], [most, most]], { stroke: "var(--line-2)", strokeDasharray: "3 4" }), Plot.dot(points, { x: "x", y: "y", r: 2.4, fill: (p) => (p.x < p.y ? "var(--accent)" : "var(--high)"), fillOpacity: 0.55 }) ] });
}
