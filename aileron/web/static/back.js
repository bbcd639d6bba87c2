// The pages that the reader left: the place on each, for the back button, and the content of lists.

import { markOf, main } from "./view.js";

const MOST = 20;
const places = new Map();
let texts = new Map();
let shown = null;

// Remember the content of the page that is shown. A request is not remembered: it may have changed since.
export function note(text, tag) {
  shown = main.querySelector(".split, article, [data-digest]") ? null : { text, tag };
}

// Return the place of the reader: the followed link with its height on the screen, and what was scrolled.
export function anchorOf(link = document.activeElement) {
  const inside = main.contains(link) && link !== main;
  const scrolled = [...main.querySelectorAll("[id]")].filter((each) => each.scrollTop).map((each) => [each.id, each.scrollTop]);
  return { top: scrollY, mark: inside ? markOf(link) : "", height: inside ? link.getBoundingClientRect().top : 0, scrolled };
}

// Remember the page that is left, under its entry of the history.
export function keep(entry, link) {
  places.set(entry, anchorOf(link));
  texts.set(entry, shown);
  shown = null;
}

// Forget the oldest places.
export function forget() {
  for (const kept of [places, texts]) [...kept.keys()].slice(0, -MOST).forEach((each) => kept.delete(each));
}

// Forget all content, when the login is over.
export function forgetTexts() {
  texts = new Map();
  shown = null;
}

// Return the place and the content of a page, or undefined if the page was not left before.
export function placeOf(entry) {
  const at = places.get(entry);
  return at && { ...at, ...texts.get(entry) };
}

// Scroll the followed link to its former height, even if there are new rows above it, and focus it.
export function restore({ top, mark, height, scrolled }) {
  scrolled.forEach(([id, value]) => { main.querySelector(`#${CSS.escape(id)}`)?.scrollTo(0, value); });
  scrollTo({ top, behavior: "instant" });
  const link = mark && main.querySelector(mark);
  if (!link) return;
  scrollBy({ top: link.getBoundingClientRect().top - height, behavior: "instant" });
  link.focus({ preventScroll: true });
}
