// Shows the state of this tab in its title, its icon, and a line above the page.

import { setLevel } from "./level.js";
import { say } from "./view.js";

// The states, each with its word in the title and its icon. The first one that applies is shown.
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
const VIEWER = "You can watch. Your role is viewer, so you do not decide.";
const BY_TOUCH = "You can watch; to decide, continue with your passkey, or run aileron open in your terminal.";
const icon = document.querySelector("link[rel=icon]");
const holds = new Set();
let title = document.title;
let waiting = 0;

export function titled(words) {
  title = words;
  write();
}

// Show the number of pending requests.
export function showCount(count) {
  waiting = count;
  write();
}

// Show the state that an answer of the daemon reports. Null means logged out, undefined that the daemon did not answer.
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
  if (vault) {
    set("locked", vault !== "unlocked");
    document.documentElement.dataset.vault = vault;
  }
  set("reading", level === "reading");
  setLevel(level ?? "");
  const byTouch = level === "reading" && headers.get("X-Aileron-Raise") === "passkey";
  document.documentElement.dataset.raise = byTouch ? "passkey" : "";
  document.getElementById("raise").hidden = !byTouch;
  if (!byTouch) say("raise-refused", "");
  const views = headers.get("X-Aileron-Role") === "viewer";
  document.getElementById("enter-again").hidden = level !== "reading" || byTouch || views || holds.has("locked");
  const reading = views ? VIEWER : document.getElementById("level").dataset.reading ?? (byTouch ? BY_TOUCH : READING); // where one signs in otherwise
  say("level", level === "reading" ? (holds.has("locked") ? LOCKED : reading) : "");
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
