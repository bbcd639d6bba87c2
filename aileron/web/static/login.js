// How long the login may decide: the page says so in time, and what it asks by itself does not keep it.

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

// What goes with a request: whether the person has done anything here since the last one.
export function used() {
  const headers = acted ? {} : { "X-Aileron-Poll": "1" };
  acted = false;
  return headers;
}

// By the daemon's clock, for this one may be another machine's.
export function follows({ headers }) {
  isKnown = true;
  if (headers.get("X-Aileron-Level") === "reading") return say("login", "");
  const there = Date.parse(headers.get("Date"));
  const idle = Date.parse(headers.get("X-Aileron-Expires")) - there;
  const whole = Date.parse(headers.get("X-Aileron-Ends")) - there;
  if (Number.isNaN(idle + whole)) return;
  say("login", notice(idle, whole));
}

// Why nobody is logged in any more, as far as that can be known here.
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

// On another device nothing opens by itself: the code of the terminal is entered here, in the same form as without a login.
export function armCode() {
  const dialog = document.getElementById("code");
  document.getElementById("enter-again").addEventListener("click", () => {
    const form = document.getElementById("no-session").content.querySelector("form").cloneNode(true);
    dialog.querySelector("div").replaceChildren(form);
    dialog.showModal();
  });
  document.getElementById("hide-code").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.querySelector("div").replaceChildren());
}
