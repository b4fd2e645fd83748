// The page: sections, table of contents, and theme switch.
function theme_switch() {
  const stored = () => { try { return localStorage.getItem("spinney-theme"); } catch { return null; } };
  const store = (value) => { try { localStorage.setItem("spinney-theme", value); } catch { /* local files may have no storage */ } };
  const choose = (value) => {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
    for (const b of buttons) b.setAttribute("aria-pressed", String(b.dataset.value === value));
  };
  const buttons = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]].map(([value, words]) =>
    button(words, () => { choose(value); store(value); }, { "data-value": value }));
  choose(["light", "dark"].includes(stored()) ? stored() : "auto");
  return el("div", { class: "switch", role: "group", "aria-label": "Colours" }, buttons);
}

function tile(entry) {
  return el("div", { class: entry.is_lead ? "tile lead" : "tile" }, el("div", { class: "what" }, entry.what), el("div", { class: "figure" }, entry.figure), el("div", { class: "more" }, entry.more));
}

function start() {
  document.getElementById("eyebrow").append(data.eyebrow);
  document.getElementById("tiles").append(...data.tiles.map(tile));
  const links = [["summary", "Summary"]], host = document.getElementById("sections");
  for (const { id, title, content } of data.sections) {
    if (!drawers[id] || content === null) continue;
    links.push([id, title]);
    host.append(el("section", { class: "part", id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), drawers[id](content)));
  }
  const list = el("ol", {}, links.map(([id, name]) => el("li", {}, el("a", { href: `#${id}` }, name))));
  document.getElementById("contents").append(list);
  document.getElementById("rail-foot").append(theme_switch(), el("span", {}, data.made_by));
  follow(list);
  for (const host of hosts) host.redraw();
  document.documentElement.dataset.ready = "yes";
}

// Highlights the link of the section in view.
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
