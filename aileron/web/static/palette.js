// The command palette: finds pages, pending requests, actions and connectors by text, and a run by its ID.

import { call } from "./key.js";

const MOST = 12;
const LISTS = ["actions", "connectors"];
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;
const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
let entries = [];
let chosen = 0;
let leave = () => {};

field.addEventListener("input", () => show());
field.addEventListener("keydown", (event) => {
  const act = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Enter: follow }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
list.addEventListener("click", ({ target }) => {
  const option = target.closest("[role=option]");
  if (!option) return;
  choose([...list.children].indexOf(option));
  follow();
});

// Open the palette, unless it is open.
// go: a function that opens the page at a path.
export async function open(go) {
  if (dialog.open) return;
  leave = go;
  entries = [...linksOf(document, "body > header a"), ...linksOf(document, "#main .asks .row-link")];
  field.value = "";
  dialog.showModal();
  show();
  for (const name of LISTS) entries.push(...await listed(name));
  if (dialog.open) show();
}

async function listed(name) {
  try {
    const answer = await call(`/fragments/${name}`, { headers: { "X-Aileron-Poll": "1" } });
    if (!answer?.ok) return [];
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return linksOf(page, `a[href^="/${name}/"]`).map((each) => ({ ...each, kind: name }));
  } catch (error) {
    return []; // the pages themselves say that the daemon is not responding
  }
}

function linksOf(page, selector) {
  return [...page.querySelectorAll(selector)].map((link) => ({
    href: link.getAttribute("href"),
    words: (link.querySelector(".row-title") ?? link).textContent.trim(),
    kind: link.matches(".row-link") ? "request" : "page",
  }));
}

function show() {
  const wanted = field.value.trim().toLowerCase();
  const found = entries.filter(({ words, href }) => `${words} ${href}`.toLowerCase().includes(wanted));
  const unique = [...new Map(found.map((each) => [each.href, each])).values()].slice(0, MOST);
  if (ID.test(wanted)) unique.unshift({ href: `/runs/${wanted.toUpperCase()}`, words: wanted.toUpperCase(), kind: "run" });
  list.replaceChildren(...unique.map(drawn));
  choose(0);
}

function drawn({ href, words, kind }, place) {
  const option = Object.assign(document.createElement("li"), { id: `option-${place}` });
  option.setAttribute("role", "option");
  option.dataset.href = href;
  const name = Object.assign(document.createElement("span"), { textContent: words });
  option.append(name, Object.assign(document.createElement("small"), { textContent: kind, className: "quiet" }));
  return option;
}

function choose(place) {
  const options = [...list.children];
  chosen = Math.min(Math.max(place, 0), Math.max(options.length - 1, 0));
  options.forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
  if (options.length) field.setAttribute("aria-activedescendant", options[chosen].id);
  else field.removeAttribute("aria-activedescendant");
  options[chosen]?.scrollIntoView({ block: "nearest" });
}

function follow() {
  const option = list.children[chosen];
  if (!option) return;
  dialog.close();
  leave(option.dataset.href);
}
