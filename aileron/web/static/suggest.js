// Suggests words for the filter of the inbox: the names of its fields, and what the listed requests have there.

import { KEYS } from "./inbox.js";

const MOST = 8;
const FOUND = /(?:^|\s)(agent|action|host|session):(\S+)((?:, \S+)*)/g;

// Add the handlers of the filter. A suggestion is chosen by the arrow keys and Enter, or by a click.
export function arm(root, field, changed) {
  const list = root.querySelector("#filter-words");
  let chosen = -1;
  const close = () => {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    choose(-1);
  };
  const choose = (place) => {
    chosen = place;
    [...list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === place)));
    if (list.children[place]) field.setAttribute("aria-activedescendant", list.children[place].id);
    else field.removeAttribute("aria-activedescendant");
  };
  const show = () => {
    const words = suggestions(root, field.value.split(/\s+/).pop());
    list.replaceChildren(...words.map(drawn));
    list.hidden = !words.length;
    field.setAttribute("aria-expanded", String(words.length > 0));
    choose(-1);
  };
  const take = (word) => {
    const before = field.value.split(/\s+/).slice(0, -1);
    field.value = [...before, word].join(" ") + (word.endsWith(":") ? "" : " ");
    changed();
    if (word.endsWith(":")) show();
    else close();
  };
  field.addEventListener("input", show);
  field.addEventListener("focus", show);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const { length } = list.hidden ? [] : list.children;
    if (event.key === "Enter" && chosen >= 0) take(list.children[chosen].textContent);
    else if (event.key === "ArrowDown" && length) choose(Math.min(chosen + 1, length - 1));
    else if (event.key === "ArrowUp" && length) choose(Math.max(chosen - 1, -1));
    else return;
    event.preventDefault();
  });
  if (document.activeElement === field) show();
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", ({ target }) => { if (target.matches("[role=option]")) take(target.textContent); });
}

function suggestions(root, typed) {
  const word = typed.toLowerCase();
  const values = valuesOf(root);
  const names = KEYS.map((key) => `${key}:`).filter((name) => name.startsWith(word));
  const given = KEYS.some((key) => word.startsWith(`${key}:`));
  const found = word ? values.filter((each) => (given ? each : each.slice(each.indexOf(":") + 1)).toLowerCase().startsWith(word)) : [];
  return [...names, ...found].filter((each) => each.toLowerCase() !== word).slice(0, MOST);
}

// Return what the rows have in each field, such as agent:goose, each once.
function valuesOf(root) {
  const all = [...root.querySelectorAll(".asks .row")].flatMap(({ dataset }) => [...dataset.found.matchAll(FOUND)]);
  const each = all.flatMap(([, key, value, more]) => `${value}${more}`.split(/,\s*/).filter(Boolean).map((one) => `${key}:${one}`));
  return [...new Set(each)].sort();
}

function drawn(words, place) {
  const option = Object.assign(document.createElement("li"), { id: `filter-word-${place}`, textContent: words });
  option.setAttribute("role", "option");
  return option;
}
