// The page: sections in their order, the list of them, and the switch of the theme.
function theme_switch() {
  const kept = () => { try { return localStorage.getItem("spinney-theme"); } catch { return null; } };
  const keep = (value) => { try { localStorage.setItem("spinney-theme", value); } catch { /* a file may have no storage */ } };
  const choose = (value) => {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
    for (const b of buttons) b.setAttribute("aria-pressed", String(b.dataset.value === value));
  };
  const buttons = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]].map(([value, words]) =>
    button(words, () => { choose(value); keep(value); }, { "data-value": value }));
  choose(["light", "dark"].includes(kept()) ? kept() : "auto");
  return el("div", { class: "switch", role: "group", "aria-label": "Colours" }, buttons);
}

function tile(entry) {
  return el("div", { class: entry.is_lead ? "tile lead" : "tile" }, el("div", { class: "what" }, entry.what), el("div", { class: "figure" }, entry.figure), el("div", { class: "more" }, entry.more));
}

function start() {
  document.getElementById("eyebrow").append(data.eyebrow);
  document.getElementById("tiles").append(...data.tiles.map(tile));
  const links = [["summary", "Summary"]], host = document.getElementById("sections");
  for (const { id, name, title, content } of data.sections) {
    if (!drawers[id] || content === null) continue;
    links.push([id, name]);
    host.append(el("section", { class: "part", id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), drawers[id](content)));
  }
  const list = el("ol", {}, links.map(([id, name]) => el("li", {}, el("a", { href: `#${id}` }, name))));
  document.getElementById("contents").append(list);
  document.getElementById("rail-foot").append(theme_switch(), el("span", {}, data.made_by));
  follow(list);
  for (const host of hosts) host.redraw();
  document.documentElement.dataset.ready = "yes";
}

// The link of the section that is being read.
function follow(list) {
  const parts = [document.getElementById("summary"), ...document.querySelectorAll("section.part")];
  const mark = () => {
    const line = window.innerHeight * 0.3;
    let now = parts[0];
    for (const part of parts) if (part.getBoundingClientRect().top <= line) now = part;
    if (window.innerHeight + window.scrollY >= document.body.scrollHeight - 4) now = parts[parts.length - 1];
    for (const link of list.querySelectorAll("a")) {
      if (link.hash === `#${now.id}`) {
        if (!link.hasAttribute("aria-current")) { link.setAttribute("aria-current", "true"); if (list.scrollWidth > list.parentElement.clientWidth) list.parentElement.scrollTo({ left: link.offsetLeft - 80 }); }
      } else link.removeAttribute("aria-current");
    }
  };
  window.addEventListener("scroll", mark, { passive: true });
  mark();
}

start();
