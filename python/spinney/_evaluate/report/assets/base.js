// Shared by all sections: the data, elements, formatted numbers, and the list of sections.
const data = JSON.parse(document.getElementById("report-data").textContent);

// ---- elements: texts become text nodes, never markup ----------------------------------------------------------
function el(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined) continue;
    if (name === "style") for (const [key, v] of Object.entries(value)) node.style.setProperty(key, v);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function select(words, options, value, change) {
  const list = el("select", { onchange: () => change(list.value) }, options.map(([key, text]) =>
    el("option", { value: key, selected: String(key) === String(value) || null }, text)));
  return el("label", { class: "field" }, words, list);
}

function button(words, press, more) {
  return el("button", { type: "button", onclick: press, ...more }, words);
}

function figure(what, value, more, swatch) {
  return el("div", {}, el("div", { class: "what" }, swatch ? el("span", { class: "swatch", style: { background: swatch } }) : null, what),
    el("div", { class: "figure" }, value), more ? el("div", { class: "more" }, more) : null);
}

function legend(entries) {
  return el("ul", { class: "legend" }, entries.map(([colour, words, kind]) =>
    el("li", {}, el("span", { class: `swatch ${kind ?? ""}`, style: { background: colour } }), words)));
}

// A range input whose track is filled up to the thumb.
function range(label, min, max, step, value, input) {
  const slider = el("input", { type: "range", min, max, step, value, "aria-label": label });
  slider.value = value;
  const fill = () => slider.style.setProperty("--done", `${max > min ? (100 * (slider.value - min)) / (max - min) : 100}%`);
  slider.addEventListener("input", () => { fill(); input(Number(slider.value)); });
  slider.refill = fill;
  fill();
  return slider;
}

// ---- numbers ----------------------------------------------------------------------------------------------------
const MINUS = "\u2212";
function num(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 1).replace("-", MINUS);
  const decimals = size === 0 || Number.isInteger(value) ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return whole(value, Math.min(decimals, 12));
}
function whole(value, decimals = 0) {
  return value.toLocaleString("en-GB", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replace("-", MINUS);
}
// A number on an axis: as short as it can be.
function tick(value) {
  return num(Number(value.toPrecision(3)), 3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}
// A column value on an axis: years without a separator, and enough digits for values far from zero.
function value_tick(value, span) {
  if (Number.isInteger(value) && Math.abs(value) < 10000) return String(value).replace("-", MINUS);
  const digits = Math.min(12, Math.max(3, 2 + Math.ceil(Math.log10(Math.abs(value) / span || 1))));
  return num(Number(value.toPrecision(digits)), digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}
function fixed(value, decimals) {
  return value === null || value === undefined ? "–" : whole(value, decimals);
}
function pct(fraction, decimals = 0) {
  if (fraction === null || fraction === undefined) return "–";
  const least = 10 ** -decimals; // only 0 is shown as 0 %, and only 1 as 100 %
  if (fraction > 0 && 100 * fraction < least) return `<${least} %`;
  if (fraction < 1 && 100 * (1 - fraction) < least) return `>${100 - least} %`;
  return `${whole(100 * fraction, fraction === 0 || fraction === 1 ? 0 : decimals)} %`;
}
// Percentages that add up to that of the sum: the largest remainders are rounded up.
function shares(fractions, decimals = 0) {
  const unit = 100 * 10 ** decimals, floors = fractions.map((f) => Math.floor(unit * f + 1e-9));
  const order = d3.range(fractions.length).sort((a, b) => unit * fractions[b] - floors[b] - (unit * fractions[a] - floors[a]));
  const n_up = Math.round(unit * d3.sum(fractions)) - d3.sum(floors);
  for (const k of order.slice(0, Math.max(0, n_up))) floors[k] += 1;
  return floors.map((n, k) => (n === 0 || n === unit ? pct(fractions[k], decimals) : `${whole((100 * n) / unit, decimals)} %`));
}
function signed(value, decimals) {
  if (value === null || value === undefined) return "–";
  return (value > 0 ? "+" : "") + whole(value, decimals);
}
// Decimals that show a spread in two digits.
function decimals_for(spread) {
  return spread > 0 ? Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(spread)))) : 3;
}
function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return "<1 ms";
  if (value < 1) return `${whole(1000 * value)} ms`;
  return value < 120 ? `${num(value, 3)} s` : `${whole(value / 60, 1)} min`;
}
function plural(count, noun, many) {
  return `${whole(count)} ${count === 1 ? noun : many ?? noun + "s"}`;
}
function elide(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2))}…${text.slice(text.length - Math.floor(most / 2) + 1)}`;
}
function class_colour(code) {
  return `var(--class-${code % 8})`;
}
function tint(colour, strength) {
  return `color-mix(in srgb, ${colour} ${Math.round(8 + 46 * Math.min(1, Math.max(0, strength)))}%, var(--card))`;
}

// ---- sections -----------------------------------------------------------------------------------------------------
// Each file registers its sections; the page shows them in the order of the report.
const drawers = {};

function card(title, note, ...children) {
  return el("div", { class: "card" }, title ? el("h3", {}, title) : null, note ? el("p", { class: "note" }, note) : null, ...children);
}
