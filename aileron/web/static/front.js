// Ignores a click that was meant for a window in front of this one: the second click of a double click whose first click
// closed that window. It arrives just after this window gets the focus, from a pointer that was not over the page.

import { say } from "./view.js";

const SETTLE_MS = 500;
// Browsers briefly take the focus from a window even if no other window comes in front.
const AWAY_MS = 100;
const NOT_MEANT = "This window had just come to the front, so nothing was done. Press the button again.";
const ACTS = "main button:not(#deny)";
let behindSince = Infinity;
let frontSince = -Infinity;
let pointerSince = Infinity;

export function armFront() {
  // A window in front gets the focus while it loads. Decision buttons are disabled for a moment after loading anyway.
  setTimeout(() => { if (!document.hasFocus()) leave(); }, SETTLE_MS);
  addEventListener("blur", leave);
  addEventListener("focus", come);
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : come()));
  document.addEventListener("pointermove", () => {
    pointerSince = Math.min(pointerSince, performance.now());
  }, { capture: true, passive: true });
  document.documentElement.addEventListener("pointerleave", () => { pointerSince = Infinity; });
  document.addEventListener("click", refuse, { capture: true });
}

function leave() {
  behindSince = Math.min(behindSince, performance.now());
}

function come() {
  if (performance.now() - behindSince >= AWAY_MS) frontSince = performance.now();
  behindSince = Infinity;
}

function refuse(event) {
  const before = performance.now() - SETTLE_MS;
  const pointed = event.detail > 0 && pointerSince <= before;
  if (frontSince <= before || pointed || !event.target.closest(ACTS)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  say("trouble", NOT_MEANT);
}
