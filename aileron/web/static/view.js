// What is in the page: put there whole, with the reader's focus, text and place kept.

import { now } from "./key.js";

const MINUTE_MS = 60000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const SLACK_MS = 5000;
const TICK_MS = 10000;
const FORMS = {
  day: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
};
const DAYS = { "-1": "yesterday", 0: "today", 1: "tomorrow" };
const main = document.getElementById("main");
let place = "";
let kept = [];
let unsent = [];

// What was typed or chosen on one page is no word about what another shows.
export function show(nodes) {
  const focused = document.activeElement;
  const inside = main.contains(focused);
  const mark = inside && markOf(focused);
  const here = location.pathname + location.search;
  // The list beside a request is the same whichever request it is beside.
  const left = place !== here ? remember(".rows [id]") : main.dataset.template ? kept : remember();
  place = here;
  main.replaceChildren(...nodes);
  localiseAll();
  left.forEach((restore) => restore());
  if (inside) ((mark && main.querySelector(mark)) || main.querySelector("h1")).focus({ preventScroll: true });
}

// What was typed in a page and not sent, except by what keeps it itself.
export function typed() {
  if (main.dataset.template) return unsent;
  const fields = [...main.querySelectorAll("textarea:not([readonly], #action-text), input[type=text], input:not([type])")];
  return fields.filter((each) => each.value.trim() && each.value !== each.defaultValue).map(({ value }) => value);
}

// Parts of a page that may be told otherwise while what it asks is the same: they take the place of the earlier ones,
// and all around them stays, with what is selected there.  Null: something else is otherwise as well.
export function exchange(before, now) {
  if (frame(before) !== frame(now)) return null;
  const parts = [...now.querySelectorAll("[data-part]")];
  const changed = parts.filter((part) => part.outerHTML !== partOf(before, part).outerHTML);
  return changed.map((part) => {
    const there = partOf(main, part);
    const focused = there.contains(document.activeElement) && markOf(document.activeElement);
    const scrolled = there.scrollTop;
    keepRows(partOf(before, part), there, part);
    there.replaceWith(part);
    part.scrollTop = scrolled;
    localiseAll();
    main.firstElementChild.dispatchEvent(new Event("patched"));
    if (focused) (part.querySelector(focused) ?? main.querySelector("h1")).focus({ preventScroll: true });
    return part;
  });
}

// A row that is told as before stays as it is in the page, with its tick.
function keepRows(before, there, part) {
  for (const row of part.querySelectorAll("[data-row]")) {
    const same = `[data-row="${CSS.escape(row.dataset.row)}"]`;
    const live = there.querySelector(same);
    if (live && before.querySelector(same)?.outerHTML === row.outerHTML) row.replaceWith(live);
  }
}

function partOf(root, { dataset: { part } }) {
  return root.querySelector(`[data-part="${CSS.escape(part)}"]`);
}

// A page without the contents of its parts.
function frame(root) {
  const bare = root.cloneNode(true);
  bare.querySelectorAll("[data-part]").forEach((part) => part.replaceChildren());
  return bare.outerHTML;
}

// What the reader typed, chose, opened or scrolled, and what came of what they asked for, each by its id.
function remember(which = "[id]") {
  const found = [...main.querySelectorAll(which)].map((element) => [element.id, stateOf(element)]);
  return found.filter(([, state]) => state).map(([id, state]) => () => {
    const element = main.querySelector(`#${CSS.escape(id)}`);
    if (element) Object.assign(element, state);
  });
}

function stateOf(element) {
  if (element.matches("textarea, input:not([type=checkbox], [type=radio])")) {
    const { value, selectionStart, selectionEnd } = element;
    if (value === element.defaultValue) return null;
    return selectionStart === null ? { value } : { value, selectionStart, selectionEnd };
  }
  if (element.matches("input")) return element.checked === element.defaultChecked ? null : { checked: element.checked };
  if (element.matches("select")) return { value: element.value };
  if (element.matches("details")) return { open: element.open };
  if (element.matches("output, .answer")) {
    return element.closest("[data-left]") ? null : { textContent: element.textContent }; // another question comes there
  }
  return element.scrollTop ? { scrollTop: element.scrollTop } : null;
}

export function showTemplate(id) {
  if (main.dataset.template !== id) {
    if (!main.dataset.template) {
      unsent = typed();
      kept = remember();
    }
    show([document.getElementById(id).content.cloneNode(true)]);
  }
  main.dataset.template = id;
}

export function showFragment(text) {
  const root = parse(text);
  show([root]);
  delete main.dataset.template;
  say("said", root.dataset.said);
  return root;
}

// A document without a browsing context: whatever it holds, nothing in it runs.
export function parse(text) {
  return new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
}

export function say(id, words) {
  const place = document.getElementById(id);
  if (place.textContent !== words) place.textContent = words;
}

function markOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  return element.hasAttribute("href") && `a[href="${CSS.escape(element.getAttribute("href"))}"]`;
}

function localiseAll() {
  main.querySelectorAll("time").forEach(localise);
  main.querySelectorAll("svg [data-at]").forEach(localiseDrawn);
}

setInterval(localiseAll, TICK_MS);

// How long ago, or when by the reader's clock; the exact moment is its title.
function localise(element) {
  const at = new Date(element.dateTime);
  const words = element.dataset.clock ? onClock(at) : spoken(at);
  element.title = `${at.toLocaleString()} (${element.dateTime})`;
  if (element.textContent !== words) element.textContent = words;
}

// A moment within a drawing, where there is little room.
function localiseDrawn(element) {
  const words = new Date(element.dataset.at).toLocaleString([], FORMS[element.dataset.form]);
  if (element.textContent !== words) element.textContent = words;
}

function spoken(at) {
  const age = now() - at;
  const minutes = Math.floor(Math.abs(age) / MINUTE_MS);
  if (minutes >= 60) return onClock(at);
  if (minutes) return age > 0 ? `${minutes} min ago` : `in ${minutes} min`;
  return age > -SLACK_MS ? "just now" : "in less than a minute";
}

// As in: today 17:31.
export function onClock(at) {
  const today = new Date(now());
  const day = DAYS[Math.round((midnight(at) - midnight(today)) / DAY_MS)];
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return `${day ?? at.toLocaleDateString([], { dateStyle: "medium" })} ${time}`;
}

function midnight(at) {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate());
}
