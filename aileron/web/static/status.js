// How this tab stands: in its title, in its icon and in a line above the page, so that no tab ends in silence.

import { say } from "./view.js";

// The first that holds names the tab.  Each: the word in the title, the icon, or nothing: the icon of what waits.
const STATES = {
  moved: ["Old address", "icon-off"],
  out: ["Logged out", "icon-off"],
  offline: ["Offline", "icon-off"],
  paused: ["Paused", "icon-paused"],
  locked: ["Vault locked", "icon-reading"],
  reading: ["Watching", "icon-reading"],
};
const LOCKED = "The vault is locked, so nothing runs. You can watch; to decide, run aileron open in your terminal.";
const READING = "You can watch; to decide, run aileron open in your terminal.";
const icon = document.querySelector("link[rel=icon]");
const holds = new Set();
let title = document.title;
let waiting = 0;

export function titled(words) {
  title = words;
  write();
}

// How many requests are pending.
export function showCount(count) {
  waiting = count;
  write();
}

// What an answer of the daemon says of it; null: nobody is logged in; undefined: there was none.
export function showStatus(answer, moved = false) {
  set("offline", answer === undefined);
  if (answer !== undefined) {
    set("moved", moved);
    set("out", answer === null && !moved);
  }
  if (answer) showLevel(answer);
  write();
}

function showLevel({ headers }) {
  const level = headers.get("X-Aileron-Level");
  const vault = headers.get("X-Aileron-Vault");
  const paused = headers.get("X-Aileron-Paused");
  if (paused) set("paused", paused !== "no");
  if (vault) set("locked", vault !== "unlocked");
  set("reading", level === "reading");
  document.documentElement.dataset.level = level ?? "";
  document.getElementById("enter-again").hidden = level !== "reading";
  say("level", level === "reading" ? (holds.has("locked") ? LOCKED : READING) : "");
}

function set(name, on) {
  if (on) holds.add(name);
  else holds.delete(name);
}

function write() {
  const [words, image] = STATES[Object.keys(STATES).find((name) => holds.has(name))] ?? ["", ""];
  const counted = waiting && !holds.has("out") && !holds.has("moved") ? `(${waiting}) ${title}` : title;
  const told = words ? `${words} · ${counted}` : counted;
  const usual = waiting ? "icon-waiting" : "icon";
  const file = image && !(image === "icon-reading" && waiting) ? image : usual;
  if (document.title !== told) document.title = told;
  if (icon.getAttribute("href") !== `/static/${file}.svg`) icon.href = `/static/${file}.svg`;
}
