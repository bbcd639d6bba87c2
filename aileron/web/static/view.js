// Replaces the content of the page, and keeps the reader's focus, input and scroll position.

import { now } from "./key.js";

const MINUTE_MS = 60000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const SLACK_MS = 5000;
const TICK_MS = 10000;
const SETTLE_MS = 500;
const ROWS = "[data-row], .list > tbody > tr";
const FORMS = {
  day: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
};
const DAYS = { "-1": "yesterday", 0: "today", 1: "tomorrow" };
export const main = document.getElementById("main");
let place = "";
let kept = [];
let unsent = [];

// Show these nodes as the page's content. Input is kept only if they belong to the same page as before.
export function show(nodes) {
  const focused = document.activeElement;
  const inside = main.contains(focused);
  const mark = inside && markOf(focused);
  const here = location.pathname + location.search;
  // The list beside a request is the same for all requests, so its state is kept.
  const left = place !== here ? remember(".rows [id]") : main.dataset.template ? kept : remember();
  place = here;
  main.replaceChildren(...nodes);
  localiseAll();
  left.forEach((restore) => restore());
  if (inside) find(main, mark).focus({ preventScroll: true });
}

// Return the element that the selector finds, or the page's heading.
function find(root, mark) {
  return (mark && root.querySelector(mark)) || main.querySelector("h1");
}

// Return the texts that were typed on the page and not sent, without the editor's, which keeps its own.
export function typed() {
  if (main.dataset.template) return unsent;
  const fields = [...main.querySelectorAll("textarea:not([readonly], #action-text), input[type=text], input:not([type])")];
  return fields.filter((each) => each.value.trim() && each.value !== each.defaultValue).map(({ value }) => value);
}

// Replace the changed parts ([data-part]) of the page by those of its new drawing, and leave everything else. Return the
// new parts, or null if the page also differs outside the parts.
export function exchange(before, now) {
  const parts = partsOf(now);
  if (frame(before) !== frame(now) || new Set(parts.map(({ dataset }) => dataset.part)).size < parts.length) return null;
  announce(now.dataset.said);
  const changed = parts.filter((part) => part.outerHTML !== partOf(before, part).outerHTML);
  return changed.map((part) => {
    const there = partOf(main, part);
    const focused = there.contains(document.activeElement) && document.activeElement;
    const scrolled = there.scrollTop;
    const down = scrollY > 0; // measured before rows are taken out, which shortens the page
    const kept = keepRows(partOf(before, part), there, part);
    const first = down && kept.find(([, { bottom }]) => bottom > 0);
    there.replaceWith(part);
    part.scrollTop = scrolled;
    if (first) scrollBy({ top: first[0].getBoundingClientRect().top - first[1].top, behavior: "instant" });
    kept.forEach(restIfMoved);
    localiseAll();
    main.firstElementChild.dispatchEvent(new Event("patched"));
    if (focused) (focused.isConnected ? focused : find(part, markOf(focused))).focus({ preventScroll: true });
    return part;
  });
}

// Keep each unchanged row of a part as it is on the page, with its checkbox and its buttons. Return the kept rows, each
// with its place before.
function keepRows(before, there, part) {
  const known = new Map([...before.querySelectorAll(ROWS)].map((row, at) => [row.outerHTML, at]));
  const live = [...there.querySelectorAll(ROWS)].map((row) => [row, row.getBoundingClientRect()]);
  const kept = [];
  for (const row of part.querySelectorAll(ROWS)) {
    const same = live[known.get(row.outerHTML)];
    if (!same) continue;
    known.delete(row.outerHTML);
    kept.push(same);
    row.replaceWith(same[0]);
  }
  return kept;
}

// Disable the buttons of a row for a moment if the row moved: a press may be meant for the row that was there before.
function restIfMoved([row, { top }]) {
  if (Math.abs(row.getBoundingClientRect().top - top) < 1) return;
  const buttons = [...row.querySelectorAll("button:not(:disabled)")];
  buttons.forEach((button) => { button.disabled = true; });
  setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), SETTLE_MS);
}

// Have a screen reader announce what the page says now.
function announce(said) {
  const root = main.firstElementChild;
  if (root.dataset.said === said) return;
  root.dataset.said = said;
  say("said", said);
}

// Return the parts of a page that lie in no other part. A form's fields have names of parts for other uses.
function partsOf(root) {
  const all = [...root.querySelectorAll("[data-part]:not(input, textarea)")];
  return all.filter((part) => !part.parentElement.closest("[data-part]"));
}

function partOf(root, { dataset: { part } }) {
  return root.querySelector(`[data-part="${CSS.escape(part)}"]`);
}

// Return the HTML of a page without the contents of its parts and without what was searched for.
function frame(root) {
  const bare = root.cloneNode(true);
  bare.removeAttribute("data-said");
  bare.querySelectorAll("input[type=search]").forEach((field) => field.removeAttribute("value")); // it is typed in
  partsOf(bare).forEach((part) => part.replaceChildren());
  return bare.outerHTML;
}

// Return functions that restore the state of elements by ID: input, choices, open folds, scrolling and messages.
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
    return element.closest("[data-left]") ? null : { textContent: element.textContent }; // the page is about to show another request
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

// Parse HTML into an element. Its scripts never run, since the document has no browsing context.
export function parse(text) {
  return new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
}

export function say(id, words) {
  const place = document.getElementById(id);
  if (place.textContent !== words) place.textContent = words;
}

// Return a selector that finds an element in a later drawing of the page, or "" if nothing tells it from others.
export function markOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  if (element.matches("details[id] > summary")) return `#${CSS.escape(element.parentElement.id)} > summary`;
  const name = ["href", "data-copy"].find((each) => element.hasAttribute(each));
  return name ? `${element.localName}[${name}="${CSS.escape(element.getAttribute(name))}"]` : "";
}

function localiseAll() {
  main.querySelectorAll("time").forEach(localise);
  main.querySelectorAll("svg [data-at]").forEach(localiseDrawn);
}

setInterval(localiseAll, TICK_MS);

// Show a moment as an age or in the reader's time zone, with the exact moment as the tooltip.
function localise(element) {
  const at = new Date(element.dateTime);
  const words = element.dataset.clock ? onClock(at) : spoken(at);
  element.title = `${at.toLocaleString()} (${element.dateTime})`;
  if (element.textContent !== words) element.textContent = words;
}

// Show a moment in a chart, in a short form.
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

// Return a moment in the reader's time zone, such as: today 17:31.
export function onClock(at) {
  const today = new Date(now());
  const day = DAYS[Math.round((midnight(at) - midnight(today)) / DAY_MS)];
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return `${day ?? at.toLocaleDateString([], { dateStyle: "medium" })} ${time}`;
}

function midnight(at) {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate());
}
