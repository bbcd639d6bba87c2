// The time until the login may no longer decide, with a notice before it ends. Automatic requests do not extend it.

import { wasRestarted } from "./key.js";
import { say } from "./view.js";

const MINUTE_MS = 60000;
const IDLE_NOTICE_MS = 5 * MINUTE_MS;
const END_NOTICE_MS = 15 * MINUTE_MS;
let acted = true;
let isKnown = false;

for (const kind of ["pointerdown", "keydown", "wheel", "touchmove"]) {
  addEventListener(kind, () => { acted = true; }, { passive: true, capture: true });
}
document.addEventListener("visibilitychange", () => { acted ||= !document.hidden; });

// Return the headers that mark a request as automatic, unless the person used the page since the last request.
export function used() {
  const headers = acted ? {} : { "X-Aileron-Poll": "1" };
  acted = false;
  return headers;
}

// Show a notice if the login soon may no longer decide, by the daemon's clock.
export function follows({ headers }) {
  isKnown = true;
  if (headers.get("X-Aileron-Level") === "reading") return say("login", "");
  const there = Date.parse(headers.get("Date"));
  const idle = Date.parse(headers.get("X-Aileron-Expires")) - there;
  const whole = Date.parse(headers.get("X-Aileron-Ends")) - there;
  if (Number.isNaN(idle + whole)) return;
  say("login", notice(idle, whole));
}

// Return the reason why the login ended, or "" if it is unknown.
export function ended() {
  say("login", "");
  if (wasRestarted()) return "Your login ended because the daemon restarted.";
  return isKnown ? "Your login was ended, in a terminal or on another page." : "";
}

function notice(idle, whole) {
  if (whole <= END_NOTICE_MS) return `You can decide for ${span(whole)}, then only watch.`;
  return idle <= IDLE_NOTICE_MS ? `You can decide for ${span(idle)}, then only watch, unless you use this page.` : "";
}

function span(time) {
  return time < MINUTE_MS ? "less than a minute" : `${Math.floor(time / MINUTE_MS)} min`;
}

// Add the dialog in which a login that only reads enters a new code from the terminal, in the form of the login page.
export function armCode() {
  const dialog = document.getElementById("code");
  document.addEventListener("click", ({ target }) => {
    if (!target.closest(".enter-again")) return;
    const form = document.getElementById("no-session").content.querySelector("form");
    if (!form) return; // a link to where one signs in otherwise
    dialog.querySelector("div").replaceChildren(form.cloneNode(true));
    dialog.showModal();
  });
  document.getElementById("hide-code").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.querySelector("div").replaceChildren());
}
