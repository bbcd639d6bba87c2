// The palette: every page, pending request, action and connector by a few letters; a run by its id.

import { call } from "./key.js";

const MOST = 12;
const LISTS = ["actions", "connectors"];
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;
const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
let entries = [];
let chosen = 0;

export function armPalette(go) {
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (!dialog.open) open();
  });
  field.addEventListener("input", () => show());
  field.addEventListener("keydown", (event) => {
    const act = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Enter: () => follow(go) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  list.addEventListener("click", ({ target }) => {
    const option = target.closest("[role=option]");
    if (!option) return;
    choose([...list.children].indexOf(option));
    follow(go);
  });
}

async function open() {
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

function follow(go) {
  const option = list.children[chosen];
  if (!option) return;
  dialog.close();
  go(option.dataset.href);
}
