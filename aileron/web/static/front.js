// A press that was meant for the window in front of this one: the second of a double click whose first closed that
// window. It comes just after this window got the focus, with a pointer that was not over this page before.

import { say } from "./view.js";

const SETTLE_MS = 500;
const NOT_MEANT = "This window had just come to the front, so nothing was done. Press the button again.";
const ACTS = "main button:not(#deny)";
let focusedAt = -Infinity;
let pointerSince = null;

export function armFront() {
  addEventListener("focus", came);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) came(); });
  document.addEventListener("pointermove", point, { capture: true, passive: true });
  document.documentElement.addEventListener("pointerleave", () => { pointerSince = null; });
  document.addEventListener("click", refuse, { capture: true });
}

function came() {
  focusedAt = performance.now();
}

function point() {
  pointerSince = pointerSince ?? performance.now();
}

function refuse(event) {
  const rests = performance.now() - SETTLE_MS;
  const pointed = event.detail > 0 && pointerSince !== null && pointerSince <= rests;
  if (focusedAt <= rests || pointed || !event.target.closest(ACTS)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  say("trouble", NOT_MEANT);
}
