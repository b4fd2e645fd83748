// The decision tree: one tree that contains all nested ones. Position p of the slider is a tree of the sequence, from the
// root alone (0) to the largest; a node is split at p if the first penalty that prunes it exceeds that of p.
const LINE = 16, PAD_X = 10, GAP_X = 16, LABEL_LINE = 14;
const ruler = document.createElement("canvas").getContext("2d");

function text_width(words, font) {
  ruler.font = font;
  return ruler.measureText(words).width;
}

// Layout of the nodes: as narrow as possible without overlap, parents centred above their children. The outline of a
// branch is its leftmost and rightmost point at every depth (Reingold and Tilford 1981, with widths).
function place(root, gap) {
  const outline_of = (node) => {
    const half = node.width / 2;
    if (!node.children) return { low: [-half], high: [half] };
    const [left, right] = node.children.map(outline_of);
    const n = Math.min(left.low.length, right.low.length);
    let apart = 0;
    for (let k = 0; k < n; k++) apart = Math.max(apart, left.high[k] - right.low[k]);
    const shift = (apart + gap) / 2;
    node.children[0].offset = -shift;
    node.children[1].offset = shift;
    const low = [-half], high = [half];
    for (let k = 0; k < Math.max(left.low.length, right.low.length); k++) {
      low.push(Math.min(k < left.low.length ? left.low[k] - shift : Infinity, k < right.low.length ? right.low[k] + shift : Infinity));
      high.push(Math.max(k < left.high.length ? left.high[k] - shift : -Infinity, k < right.high.length ? right.high[k] + shift : -Infinity));
    }
    return { low, high };
  };
  const outline = outline_of(root);
  const put = (node, x) => {
    node.x = x;
    for (const child of node.children ?? []) put(child, x + child.offset);
  };
  const left = Math.min(...outline.low);
  put(root, -left);
  return Math.max(...outline.high) - left;
}

const MOST_OPEN = 24; // leaves that are unfolded by default

class TreePicture {
  constructor(tree, on_node) {
    this.tree = tree;
    this.on_node = on_node;
    this.folded = new Set();
    this.folds_automatically = true; // until the user folds or unfolds
    this.now = 0;
    this.frame = el("div", { class: "tree-frame" });
    this.tip = el("div", { class: "node-tip no-print", hidden: true, "aria-hidden": "true" });
    this.frame.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    this.frame.addEventListener("focusout", () => { this.tip.hidden = true; });
    this.frame.addEventListener("scroll", () => { this.tip.hidden = true; });
    this.svg = d3.select(this.frame).append("svg").attr("role", "tree").attr("aria-label", "The tree; arrow keys move, Enter folds");
    this.edges = this.svg.append("g");
    this.labels = this.svg.append("g");
    this.boxes = this.svg.append("g");
    this.parent = this.parents();
    const values = tree.nodes.filter((node) => node.value !== undefined).map((node) => node.value);
    this.low = Math.min(...values);
    this.high = Math.max(...values);
  }

  parents() {
    const parent = new Array(this.tree.nodes.length).fill(-1);
    this.tree.nodes.forEach((node, i) => {
      if (node.right !== undefined) parent[i + 1] = parent[node.right] = i;
    });
    return parent;
  }

  is_split(i) { return this.tree.nodes[i].right !== undefined && this.tree.nodes[i].first > this.cut; }

  // The nodes to draw, with their sizes, without folded and pruned ones.
  visible() {
    const list = [];
    const visit = (i, depth) => {
      const open = this.is_split(i) && !this.folded.has(i);
      const shown = { i, depth, node: this.tree.nodes[i], is_split: this.is_split(i), open };
      list.push(shown);
      if (open) shown.children = [visit(i + 1, depth + 1), visit(this.tree.nodes[i].right, depth + 1)];
      for (const child of shown.children ?? []) child.parent = shown;
      return shown;
    };
    const root = visit(0, 0);
    const n_ends = list.filter((shown) => !shown.open).length;
    this.is_small = n_ends > 18;
    for (const shown of list) this.measure(shown);
    return { root, list };
  }

  measure(shown) {
    const font = getComputedStyle(this.frame).fontFamily, node = shown.node;
    shown.lines = this.is_small ? [pct(node.fraction, 1)] : [`n = ${whole(node.n)} · ${pct(node.fraction, 1)}`];
    if (shown.is_split && !shown.open) shown.lines.push(`+ ${plural(this.leaves_below(shown.i), "leaf", "leaves")}`);
    const prediction = text_width(node.prediction, `650 12px ${font}`);
    const small = Math.max(...shown.lines.map((line) => text_width(line, `11px ${font}`)));
    shown.box = Math.max(prediction, small, this.is_small ? 30 : 62) + 2 * PAD_X;
    shown.column = shown.open ? node.column : "";
    const column = shown.column ? text_width(shown.column, `650 12px ${font}`) + 8 : 0;
    const label = Math.max(0, ...node.label.map((line) => text_width(line, `11px ${font}`))) + 14;
    shown.width = Math.max(shown.box, column, label);
    shown.height = LINE * (1 + shown.lines.length) + 10 + (node.proba ? 8 : 0);
  }

  leaves_below(i) { return this.is_split(i) ? this.leaves_below(i + 1) + this.leaves_below(this.tree.nodes[i].right) : 1; }

  stand(list) {
    const deepest = Math.max(...list.map((shown) => shown.depth));
    let y = 14;
    for (let depth = 0; depth <= deepest; depth++) {
      const row = list.filter((shown) => shown.depth === depth);
      if (depth) y += LABEL_LINE * Math.max(...row.map((shown) => shown.node.label.length)) + 44;
      for (const shown of row) shown.y = y;
      y += Math.max(...row.map((shown) => shown.height + (shown.column ? LINE + 2 : 0)));
    }
    return y + 16;
  }

  show(position, is_quick = false) {
    this.cut = this.tree.n_leaves.length - 1 - position;
    this.position = position;
    const { root, list } = this.visible();
    const width = place(root, this.is_small ? 8 : GAP_X) + 28, height = this.stand(list);
    for (const shown of list) shown.x += 14;
    this.list = list;
    const ids = new Set(list.map((shown) => shown.i));
    while (!ids.has(this.now)) this.now = this.parent[this.now];
    const room = this.frame.clientWidth || 900;
    const scale = Math.min(1, Math.max(room / width, room < 600 ? 0.6 : 0.5));
    this.svg.attr("viewBox", `0 0 ${width} ${height}`).attr("width", width * scale).attr("height", height * scale);
    const time = is_quick ? 0 : motion;
    this.draw_edges(list, time);
    this.draw_labels(list, time);
    this.draw_boxes(list, time);
    this.light();
    this.on_node(this.now);
  }

  draw_edges(list, time) {
    const path = (d) => {
      const x1 = d.parent.x, y1 = d.parent.y + d.parent.height + LINE + 4, x2 = d.x, y2 = d.y, middle = y1 + 16;
      return `M${x1},${y1}C${x1},${middle + 6} ${x2},${y1 - 2} ${x2},${middle + 14}L${x2},${y2}`;
    };
    this.edges.selectAll("path").data(list.filter((d) => d.parent), (d) => d.i).join(
      (enter) => enter.append("path").attr("class", "edge").attr("d", path).attr("opacity", 0),
    ).attr("stroke-width", (d) => 1.4 + 9 * d.node.fraction).transition().duration(time).attr("d", path).attr("opacity", 1);
  }

  draw_labels(list, time) {
    const wanted = list.filter((d) => d.parent);
    const groups = this.labels.selectAll("g").data(wanted, (d) => d.i).join((enter) => {
      const group = enter.append("g").attr("opacity", 0);
      group.append("rect").attr("class", "chip").attr("rx", 4);
      group.each(function (d) {
        d.node.label.forEach((line, k) => d3.select(this).append("text").attr("class", "answer-line").attr("y", k * LABEL_LINE).text(line));
      });
      return group;
    });
    groups.select("rect").attr("x", (d) => -this.label_width(d) / 2).attr("width", (d) => this.label_width(d))
      .attr("y", -8).attr("height", (d) => d.node.label.length * LABEL_LINE + 2);
    groups.transition().duration(time).attr("opacity", 1)
      .attr("transform", (d) => `translate(${d.x},${d.y - d.node.label.length * LABEL_LINE - 2})`);
  }

  label_width(d) {
    const font = getComputedStyle(this.frame).fontFamily;
    return Math.max(...d.node.label.map((line) => text_width(line, `11px ${font}`))) + 8;
  }

  draw_boxes(list, time) {
    const groups = this.boxes.selectAll("g.node").data(list, (d) => d.i).join((enter) => {
      const from = (d) => (d.parent ? `translate(${d.parent.x},${d.parent.y})` : `translate(${d.x},${d.y})`);
      const group = enter.append("g").attr("transform", from).attr("opacity", 0).attr("role", "treeitem");
      group.on("click", (event, d) => { this.focus(d.i, false); this.fold(d.i); })
        .on("mouseenter", (event, d) => this.point(d.i))
        .on("focus", (event, d) => this.point(d.i))
        .on("keydown", (event, d) => this.key(event, d));
      return group;
    });
    const picture = this;
    groups.attr("class", (d) => `node${d.is_split ? "" : " leaf"}${d.is_split && !d.open ? " folded" : ""}`)
      .attr("aria-level", (d) => d.depth + 1).attr("aria-expanded", (d) => (d.is_split ? String(d.open) : null))
      .attr("aria-label", (d) => `${d.node.label.join(" ")} → ${d.node.prediction}, ${plural(d.node.n, "row")}`)
      .attr("data-node", (d) => d.i)
      .each(function (d) { picture.fill_box(d3.select(this), d); });
    groups.transition().duration(time).attr("opacity", 1).attr("transform", (d) => `translate(${d.x},${d.y})`);
  }

  fill_box(group, d) {
    group.selectAll("*").remove();
    group.append("rect").attr("class", "box").attr("x", -d.box / 2).attr("width", d.box).attr("height", d.height).attr("rx", 8)
      .style("fill", this.colour(d.node));
    group.append("text").attr("class", "prediction").attr("y", 6 + LINE / 2).text(d.node.prediction);
    d.lines.forEach((line, k) => group.append("text").attr("class", "small").attr("y", 6 + LINE * (k + 1.5)).text(line));
    if (d.node.proba) {
      let x = -d.box / 2 + PAD_X;
      const width = d.box - 2 * PAD_X;
      d.node.proba.forEach((p, code) => {
        group.append("rect").attr("x", x).attr("y", d.height - 11).attr("width", width * p).attr("height", 5).style("fill", class_colour(code));
        x += width * p;
      });
    }
    if (d.column) group.append("text").attr("class", "column").attr("y", d.height + LINE / 2 + 2).text(d.column);
  }

  colour(node) {
    if (!node.proba) return tint("var(--class-0)", this.high > this.low ? (node.value - this.low) / (this.high - this.low) : 0.5);
    const even = 1 / node.proba.length;
    return tint(class_colour(node.code), (node.proba[node.code] - even) / (1 - even));
  }

  fold(i) {
    if (!this.is_split(i)) return;
    this.folds_automatically = false;
    if (this.folded.has(i)) this.folded.delete(i);
    else this.folded.add(i);
    this.show(this.position);
  }

  fold_all(is_folded) {
    this.folds_automatically = false;
    this.fold_from(is_folded ? 1 : Infinity);
    this.show(this.position);
  }

  // Folds the nodes of a level and all below.
  fold_from(level) {
    this.folded.clear();
    const depth = [0];
    this.tree.nodes.forEach((node, i) => {
      if (i > 0) depth[i] = depth[this.parent[i]] + 1;
      if (node.right !== undefined && depth[i] >= level) this.folded.add(i);
    });
  }

  // Of a tree with many leaves only the first levels are unfolded.
  fold_by_size(n_leaves) {
    if (this.folds_automatically) this.fold_from(n_leaves > MOST_OPEN ? 3 : Infinity);
  }

  point(i) {
    this.now = i;
    this.light();
    this.on_node(i);
    this.hint(i);
  }

  // A tooltip that describes the node.
  hint(i) {
    const node = this.tree.nodes[i], box = this.boxes.selectAll("g.node").filter((d) => d.i === i).node();
    if (!box) return;
    this.tip.replaceChildren(el("b", {}, node.prediction), ...node.rule.map((line) => el("div", {}, line)),
      el("div", { class: "faint" }, `${plural(node.n, "training row")}, ${plural(node.n_test, "test row")}`));
    const at = box.querySelector(".box").getBoundingClientRect(), home = this.frame.parentElement.getBoundingClientRect();
    this.tip.hidden = false;
    const left = Math.min(Math.max(8, at.left - home.left + at.width / 2 - this.tip.offsetWidth / 2), home.width - this.tip.offsetWidth - 8);
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${at.bottom - home.top + 8}px`;
  }

  // Highlights the path from the root to the current node.
  light() {
    const path = new Set();
    for (let i = this.now; i >= 0; i = this.parent[i]) path.add(i);
    this.edges.selectAll("path").classed("lit", (d) => path.has(d.i));
    this.boxes.selectAll("g.node").classed("now", (d) => d.i === this.now).attr("tabindex", (d) => (d.i === this.now ? 0 : -1));
  }

  focus(i, scroll = true) {
    this.point(i);
    const node = this.boxes.selectAll("g.node").filter((d) => d.i === i).node();
    if (node) node.focus({ preventScroll: !scroll });
  }

  key(event, d) {
    const level = this.list.filter((other) => other.depth === d.depth).sort((a, b) => a.x - b.x);
    const beside = level[level.indexOf(d) + (event.key === "ArrowRight" ? 1 : -1)];
    const to = { ArrowUp: d.parent, ArrowDown: d.children?.[0], ArrowLeft: beside, ArrowRight: beside, Home: this.list[0] }[event.key];
    if (event.key === "Enter" || event.key === " ") this.fold(d.i);
    else if (!["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home"].includes(event.key)) return;
    event.preventDefault();
    this.focus(to ? to.i : d.i);
  }
}

// ---- details of one node --------------------------------------------------------------------------------------------
function node_panel(tree, i, is_split) {
  const node = tree.nodes[i];
  const rule = node.rule.length ? el("ol", {}, node.rule.map((line) => el("li", {}, line))) : el("p", { class: "note" }, "All rows.");
  return [
    el("div", {}, el("h4", {}, `${is_split ? "Branch" : "Leaf"}: ${node.prediction}`), rule,
      el("div", { class: "figures" }, figure("training rows", whole(node.n), pct(node.fraction, 1)), figure("test rows", whole(node.n_test)))),
    el("div", {}, node.proba ? proba_bars(tree, node) : value_bars(node)),
    node_rows(tree, i),
  ];
}

function proba_bars(tree, node) {
  const texts = shares(node.proba), order = node.proba.map((p, code) => [p, code]).sort((a, b) => b[0] - a[0]).slice(0, 8);
  return el("div", { class: "proba" }, order.map(([p, code]) => el("div", { class: "proba-row" }, el("span", {}, elide(tree.classes[code], 18)),
    el("div", { class: "track" }, el("div", { class: "fill", style: { width: `${100 * p}%`, background: class_colour(code) } })),
    el("span", {}, texts[code]))));
}

function value_bars(node) {
  const most = Math.max(...node.bars, 1);
  const svg = d3.create("svg").attr("viewBox", "0 0 280 56").attr("width", "100%").attr("role", "img").attr("aria-label", "Target in this node");
  const width = 280 / node.bars.length;
  svg.selectAll("rect").data(node.bars).join("rect").attr("x", (d, k) => k * width + 1).attr("width", width - 2).attr("rx", 2)
    .attr("y", (d) => 56 - (54 * d) / most).attr("height", (d) => (54 * d) / most).style("fill", "var(--class-0)");
  return el("div", {}, el("p", { class: "note" }, `Target in this node${node.spread ? `, ${node.spread}` : ""}`), svg.node());
}

function node_rows(tree, i) {
  const last = last_below(tree, i), inside = [];
  tree.rows.leaf.forEach((leaf, row) => { if (leaf >= i && leaf <= last) inside.push(row); });
  if (!inside.length) return null;
  const shown = inside.slice(0, 5);
  return el("div", {}, el("p", { class: "note" }, `${shown.length} of its training rows`), el("div", { class: "scroll", tabindex: 0 }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", {}, elide(data.target, 20)), tree.rows.columns.map((name) => el("th", {}, elide(name, 20))))),
    el("tbody", {}, shown.map((row) => el("tr", {}, el("td", {}, el("b", {}, elide(tree.rows.target[row], 18))), tree.rows.cells[row].map((cell) => el("td", {}, cell))))))));
}

// The last node of a branch: nodes are numbered branch by branch.
function last_below(tree, i) {
  while (tree.nodes[i].right !== undefined) i = tree.nodes[i].right;
  return i;
}

// ---- the section ------------------------------------------------------------------------------------------------------
drawers.tree = (tree) => {
  const n = tree.n_leaves.length, start = tree.chosen ?? n - 1;
  const best = tree.cv.indexOf(Math.min(...tree.cv));
  const error = tree.classes ? (value) => pct(value, 1) : (value) => num(value, 4);
  let position = start;
  const panel = el("div", { class: "card node-panel", "aria-live": "polite" });
  const picture = new TreePicture(tree, (i) => panel.replaceChildren(...node_panel(tree, i, picture.is_split(i)).filter(Boolean)));
  const figures = el("div", { class: "figures", id: "tree-figures" });
  const curve = chart("Error of the nested trees by their number of leaves", (width) => error_curve(tree, position, width));
  const slider = range("Size of the tree, from the root alone to the largest", 0, n - 1, 1, start, (value) => move(value));
  slider.id = "prune-slider";
  const move = (value, is_quick) => {
    position = value;
    slider.value = value;
    slider.refill();
    slider.setAttribute("aria-valuetext", `${plural(tree.n_leaves[value], "leaf", "leaves")}, cross-validated error ${error(tree.cv[value])}`);
    figures.replaceChildren(
      figure("penalty α per leaf", num(tree.alpha[value], 3)), figure("leaves", whole(tree.n_leaves[value])),
      figure("training error", error(tree.train[value]), null, "var(--train)"),
      figure("cross-validated error", error(tree.cv[value]), `± ${error(tree.cv_error[value])}`, "var(--cv)"),
      figure("test error", error(tree.test[value]), null, "var(--test)"));
    if (curve.isConnected) curve.redraw();
    picture.fold_by_size(tree.n_leaves[value]);
    if (picture.frame.isConnected) picture.show(value, is_quick);
  };
  const jump = (words, to) => (to === null ? null : button(`${words} (${plural(tree.n_leaves[to], "leaf", "leaves")})`, () => move(to)));
  const controls = el("div", { class: "bar" }, jump("Chosen", tree.chosen), jump("Lowest cross-validated error", best), jump("Largest", n - 1));
  const folds = el("div", { class: "bar no-print" }, button("Fold to two levels", () => picture.fold_all(true)), button("Unfold all", () => picture.fold_all(false)),
    el("span", { class: "note", style: { margin: 0 } }, "Point at a node to see its rows; click it, or press Enter, to fold it. Use the arrow keys to move."));
  const classes = tree.classes && tree.classes.length <= 8 ? legend(tree.classes.map((name, code) => [class_colour(code), name])) : null;
  new ResizeObserver(() => picture.show(position, true)).observe(picture.frame);
  move(start, true);
  return [
    card("Cost-complexity pruning", `Each position of the slider is a tree of the pruning sequence; the error is the ${tree.error}.`, figures, curve, el("div", { style: { padding: "0 6px 0 42px" }, class: "slider-row" }, slider), controls),
    el("div", { class: "card tree-card" }, folds, classes, picture.frame, picture.tip), panel,
  ];
};

function error_curve(tree, position, width) {
  const points = tree.n_leaves.map((leaves, k) => ({ k, leaves, train: tree.train[k], cv: tree.cv[k], low: tree.cv[k] - tree.cv_error[k], high: tree.cv[k] + tree.cv_error[k], test: tree.test[k] }));
  const ticks = spaced(points.length, width / 46);
  const line = (y, stroke) => Plot.lineY(points, { x: "k", y, stroke, strokeWidth: 2, curve: "monotone-x" });
  const dot = (y, fill) => Plot.dot([points[position]], { x: "k", y, fill, r: 5, stroke: "var(--card)", strokeWidth: 2 });
  const percent = tree.classes !== null;
  return plot(width, {
    height: 230, marginBottom: 40, marginTop: 12,
    x: { domain: [0, Math.max(1, points.length - 1)], ticks, tickFormat: (k) => whole(tree.n_leaves[k]), label: "leaves", labelAnchor: "center", labelArrow: "none" },
    y: { zero: true, nice: true, label: null, tickFormat: percent ? (value) => pct(value) : tick, ticks: 5 },
    marks: [
      grid_y({ ticks: 5 }),
      Plot.areaY(points, { x: "k", y1: "low", y2: "high", fill: "var(--cv)", fillOpacity: 0.13, curve: "monotone-x" }),
      Plot.ruleX([position], { stroke: "var(--accent)", strokeWidth: 1.5, strokeDasharray: "3 3" }),
      line("train", "var(--train)"), line("test", "var(--test)"), line("cv", "var(--cv)"),
      dot("train", "var(--train)"), dot("test", "var(--test)"), dot("cv", "var(--cv)"),
    ],
  });
}

function spaced(n, most) {
  const step = Math.max(1, Math.ceil(n / Math.max(2, most)));
  return d3.range(0, n, step);
}
