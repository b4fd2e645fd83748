// The leaderboard: a table whose intervals share one scale.
drawers.leaderboard = (board) => {
  let sort = "score", metric = board.metrics[0].name;
  const host = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Leaderboard" });
  const draw = () => host.replaceChildren(board_table(board, metric, sort, (key) => { sort = key; draw(); }));
  draw();
  const picker = board.metrics.length > 1
    ? el("div", { class: "bar" }, select("Metric", board.metrics.map((m) => [m.name, m.words]), metric, (value) => { metric = value; draw(); })) : null;
  const words = legend([["var(--accent)", "mean over the folds with 95 % interval", "line"], ["var(--line-2)", "single folds"], ["var(--test)", "test set, with 95 % interval", "line"]]);
  return [card(null, board.note, picker, words, host)];
};

function board_table(board, metric, sort, resort) {
  const about = board.metrics.find((m) => m.name === metric);
  const rows = board.entries.map((entry) => ({ ...entry, ...entry.scores[metric] }));
  const first = metric === board.metrics[0].name;
  const key = { score: (r) => (about.is_loss ? r.mean : -r.mean), test: (r) => (about.is_loss ? r.test : -r.test), fit: (r) => r.fit, predict: (r) => r.predict }[sort];
  rows.sort((a, b) => (key(a) ?? Infinity) - (key(b) ?? Infinity));
  const all = rows.flatMap((r) => [r.low, r.high, r.test, r.test_low, r.test_high, r.mean].filter((v) => v !== null && v !== undefined));
  const scale = d3.scaleLinear(board_span(rows, d3.extent(all), about.is_loss), [8, 252]).nice(4).clamp(true);
  const spread = d3.min(rows.filter((r) => !r.is_baseline).map((r) => (r.high - r.low) / 4).filter((v) => v > 0)) ?? 0;
  const decimals = decimals_for(spread);
  const head = (words, id, number) => el("th", { class: number ? "number" : null, "aria-sort": id === sort ? "ascending" : null, scope: "col" },
    id ? button([words, id === sort ? " ↓" : ""], () => resort(id), { class: "plain" }) : words);
  const best = rows.find((r) => r.is_best);
  return el("table", { class: "board" },
    el("thead", {}, el("tr", {}, head("Model"), el("th", { scope: "col" }, board_axis(scale)), head([about.words, about.is_loss ? ", lower is better" : ""], "score", true),
      first ? head(`difference from ${elide(board.reference, 20)}`, null, true) : null, first ? head("p", null, true) : null, head("test set", "test", true), head("fit time", "fit", true), head("predict time", "predict", true))),
    el("tbody", {}, rows.map((row) => board_row({ ...row, is_reference: row.name === board.reference, word: board.word }, scale, decimals, first, best))));
}

// The scale ends somewhat beyond the baseline, so that one poor model does not squeeze the others together.
function board_span(rows, [low, high], is_loss) {
  const best = rows.find((r) => r.is_best), baseline = rows.find((r) => r.is_baseline);
  if (best && baseline) {
    const reach = 0.6 * Math.abs(baseline.mean - best.mean);
    if (is_loss) high = Math.max(Math.min(high, baseline.mean + reach), best.high ?? best.mean);
    else low = Math.min(Math.max(low, baseline.mean - reach), best.low ?? best.mean);
  }
  return [is_loss ? Math.max(0, low) : low, high];
}

function board_row(row, scale, decimals, first, best) {
  const tags = [row.is_best ? el("span", { class: "tag good" }, row.word) : null, row.is_baseline && !row.name.includes("baseline") ? el("span", { class: "tag" }, "baseline") : null, row.is_peer ? el("span", { class: "tag" }, "other library") : null];
  const difference = row.difference;
  return el("tr", { class: row.is_best ? "best" : null },
    el("td", { class: "name" }, row.name, " ", tags, row.failed ? el("div", { class: "note" }, row.failed) : null),
    el("td", {}, row.mean === null ? null : board_interval(row, scale, best)),
    el("td", { class: "number" }, el("b", {}, fixed(row.mean, decimals)), el("span", { class: "faint" }, row.error ? ` ± ${fixed(row.error, decimals)}` : "")),
    first ? el("td", { class: "number" }, row.is_reference || !difference ? "–" : [signed(difference.mean, decimals), el("div", { class: "faint" }, `${signed(difference.low, decimals)} … ${signed(difference.high, decimals)}`)]) : null,
    first ? el("td", { class: "number" }, row.is_reference || !difference ? "–" : difference.p < 0.001 ? "<0.001" : fixed(difference.p, 3)) : null,
    el("td", { class: "number" }, fixed(row.test, decimals)),
    el("td", { class: "number faint" }, seconds(row.fit)), el("td", { class: "number faint" }, seconds(row.predict)));
}

function board_axis(scale) {
  const svg = d3.create("svg").attr("viewBox", "0 0 260 18").attr("width", 260).attr("height", 18).attr("aria-hidden", "true");
  for (const at of scale.ticks(4)) {
    svg.append("text").attr("x", scale(at)).attr("y", 13).attr("text-anchor", scale(at) < 20 ? "start" : scale(at) > 240 ? "end" : "middle").attr("font-size", 11).style("fill", "var(--ink-3)").text(tick(at));
  }
  return svg.node();
}

function board_interval(row, scale, best) {
  const svg = d3.create("svg").attr("viewBox", "0 0 260 30").attr("width", 260).attr("height", 30).attr("role", "img").attr("aria-label", `${num(row.mean)}, from ${num(row.low)} to ${num(row.high)}`);
  const line = (x1, x2, y, colour, width) => svg.append("line").attr("x1", x1).attr("x2", x2).attr("y1", y).attr("y2", y).style("stroke", colour).attr("stroke-width", width).attr("stroke-linecap", "round");
  for (const tick of scale.ticks(4)) svg.append("line").attr("x1", scale(tick)).attr("x2", scale(tick)).attr("y1", 0).attr("y2", 30).style("stroke", "var(--line)");
  if (best) svg.append("line").attr("x1", scale(best.mean)).attr("x2", scale(best.mean)).attr("y1", 0).attr("y2", 30).style("stroke", "var(--accent)").attr("stroke-dasharray", "2 3");
  const beyond = row.mean > scale.domain()[1] || row.mean < scale.domain()[0];
  svg.selectAll(".fold").data(row.folds.filter((value) => value >= scale.domain()[0] && value <= scale.domain()[1])).join("circle").attr("cx", (value) => scale(value)).attr("cy", 11).attr("r", 2.4).style("fill", "var(--line-2)");
  if (row.low !== null && row.high !== null && !beyond) line(scale(row.low), scale(row.high), 11, "var(--accent)", 3);
  if (beyond) svg.append("text").attr("x", scale(row.mean) + (row.mean > scale.domain()[1] ? -8 : 8)).attr("y", 15).attr("text-anchor", row.mean > scale.domain()[1] ? "end" : "start").attr("font-size", 11).style("fill", "var(--ink-3)").text(row.mean > scale.domain()[1] ? "off scale →" : "← off scale");
  svg.append("circle").attr("cx", scale(row.mean)).attr("cy", 11).attr("r", 5).style("fill", "var(--accent)").style("stroke", "var(--card)").attr("stroke-width", 1.5);
  if (row.test !== null && row.test !== undefined) {
    if (row.test_low !== null && row.test_low !== undefined) line(scale(row.test_low), scale(row.test_high), 23, "var(--test)", 2);
    svg.append("rect").attr("x", scale(row.test) - 3.5).attr("y", 19.5).attr("width", 7).attr("height", 7).attr("transform", `rotate(45 ${scale(row.test)} 23)`).style("fill", "var(--test)").style("stroke", "var(--card)");
  }
  return svg.node();
}
