// Charts: an element that redraws when its width changes, and settings shared by all plots.
const motion = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 220;
const hosts = [];

// `draw(width)` returns an element; `host.redraw()` draws again after a change of state.
function chart(label, draw) {
  const host = el("div", { class: "chart", role: "img", "aria-label": label });
  let width = 0;
  host.redraw = () => {
    width = host.clientWidth || width || 640;
    host.replaceChildren(draw(width));
  };
  new ResizeObserver(() => {
    if (host.clientWidth && Math.abs(host.clientWidth - width) > 4) host.redraw();
  }).observe(host);
  hosts.push(host);
  return host;
}

function plot(width, options) {
  return Plot.plot({
    width,
    height: options.height ?? Math.round(Math.min(340, Math.max(230, width * 0.62))),
    marginLeft: 52,
    marginBottom: 40,
    marginRight: 16,
    ...options,
    style: { background: "transparent", fontSize: "12px", overflow: "visible", color: "inherit" },
  });
}

const TIP = { fill: "var(--card)", stroke: "var(--line-2)", fontSize: 12, textPadding: 9 };
const GRID = { stroke: "var(--line)", strokeOpacity: 1 };

function grid_x(more) { return Plot.gridX({ ...GRID, ...more }); }
function grid_y(more) { return Plot.gridY({ ...GRID, ...more }); }

// Left margin for row names: wide enough for the longest, but less than half of the chart.
const LETTER = 7; // width of a letter at 12 px, rounded up
function name_margin(names, width, most = 0.38) {
  const longest = Math.max(4, ...names.map((name) => name.length));
  return Math.min(14 + LETTER * Math.min(longest, 32), width * most);
}
// A name that fits the margin, in two lines where one is too short; rows need 28 px. Lines break before × and =, else
// after a space or a mark, else anywhere.
function fit_name(name, margin) {
  const most = Math.max(6, Math.floor((margin - 12) / LETTER));
  if (name.length <= most) return name;
  const even = (k) => Math.abs(2 * k - name.length), fits = (k) => k <= most + 1 && name.length - k <= most;
  const after = (pattern) => [...name.matchAll(pattern)].map((found) => found.index + 1);
  const k = d3.least(after(/ [×=] /g), even) ?? d3.least(after(/[\s_./-]/g).filter(fits), even) ?? most;
  return `${elide(name.slice(0, k).trimEnd(), most)}\n${elide(name.slice(k), most)}`;
}
