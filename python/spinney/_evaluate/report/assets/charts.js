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
function name_margin(names, width, most = 0.38) {
  const longest = Math.max(4, ...names.map((name) => name.length));
  return Math.min(14 + 6.6 * Math.min(longest, 32), width * most);
}
function fit_name(name, margin) {
  return elide(name, Math.max(6, Math.floor((margin - 12) / 6.6)));
}
