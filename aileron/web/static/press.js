// Ignores a click whose button moved or changed between pressing and releasing: it was meant for the earlier button.

import { say } from "./view.js";

const SLACK_PX = 2;
const NOT_MEANT = "The button moved or changed during the press, so nothing was done. Press it again.";
const BUTTONS = "main button";
let aimed = null;

export function armPress() {
  document.addEventListener("pointerdown", ({ target }) => { aimed = seen(target.closest(BUTTONS)); }, { capture: true, passive: true });
  document.addEventListener("click", refuse, { capture: true });
}

// Return the button's position, its label, and the identity of the request on the page.
function seen(button) {
  if (!button) return null;
  const { x, y } = button.getBoundingClientRect();
  const { id, digest, severity } = document.querySelector("#main > [data-title]")?.dataset ?? {};
  return { button, x, y, words: JSON.stringify([button.textContent, id, digest, severity]) };
}

// Cancel the click if the button has changed since it was pressed. A key or a screen reader presses without a pointer.
function refuse(event) {
  const button = event.target.closest(BUTTONS);
  if (!button || event.detail === 0) return;
  const before = aimed;
  const now = seen(button);
  aimed = null;
  const still = before && before.button === button && before.words === now.words
    && Math.abs(before.x - now.x) <= SLACK_PX && Math.abs(before.y - now.y) <= SLACK_PX;
  if (still) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  say("trouble", NOT_MEANT);
}
