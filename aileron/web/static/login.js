// How long the login goes on: the page says so in time, and what it asks by itself does not keep it.

import { wasRestarted } from "./key.js";
import { say } from "./view.js";

const MINUTE_MS = 60000;
const IDLE_NOTICE_MS = 5 * MINUTE_MS;
const END_NOTICE_MS = 15 * MINUTE_MS;
const SLACK_MS = 15000;
let acted = true;
let idleAt = Infinity;
let endAt = Infinity;

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
  const there = Date.parse(headers.get("Date"));
  const idle = Date.parse(headers.get("X-Aileron-Expires")) - there;
  const whole = Date.parse(headers.get("X-Aileron-Ends")) - there;
  if (Number.isNaN(idle + whole)) return;
  [idleAt, endAt] = [Date.now() + idle, Date.now() + whole];
  say("login", notice(idle, whole));
}

// Why nobody is logged in any more, as far as that can be known here.
export function ended() {
  say("login", "");
  if (wasRestarted()) return "Your login ended because the daemon restarted.";
  const now = Date.now() + SLACK_MS;
  if (now >= endAt) return "Your login ended because it reached its maximum duration.";
  return now >= idleAt ? "Your login ended because this page was not used for 30 minutes." : "";
}

function notice(idle, whole) {
  if (whole <= END_NOTICE_MS) return `Your login ends ${within(whole)}.`;
  return idle <= IDLE_NOTICE_MS ? `Your login ends ${within(idle)} unless you use this page.` : "";
}

function within(time) {
  return time < MINUTE_MS ? "within a minute" : `in ${Math.floor(time / MINUTE_MS)} min`;
}
