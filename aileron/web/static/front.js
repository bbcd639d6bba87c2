// A press that was meant for the window in front of this one: the second of a double click whose first closed that
// window. It comes just after this window got the focus, with a pointer that was not over this page before.

import { say } from "./view.js";

const SETTLE_MS = 500;
// Browsers take the focus from a window for some milliseconds where no other one comes before it.
const AWAY_MS = 100;
const NOT_MEANT = "This window had just come to the front, so nothing was done. Press the button again.";
const ACTS = "main button:not(#deny)";
let behindSince = Infinity;
let frontSince = -Infinity;
let pointerSince = Infinity;

export function armFront() {
  // A window in front gets the focus while it loads; what decides rests by itself when it is first drawn.
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
