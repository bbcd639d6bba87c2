// The way in: this tab alone has its key, and shows two words until they were typed in the terminal.

import { callWith, keep } from "./key.js";
import { say, showTemplate } from "./view.js";

const NAME = "aileron-entering";
const PLACE = "/confirm";
const ASK_MS = 700;

// The answer to a form must not be what a reload asks for again: another page waits.
export function begin(key, next) {
  sessionStorage.setItem(NAME, JSON.stringify({ key, next }));
  location.replace(PLACE);
}

// Whether this tab waits: wherever it is led meanwhile, it goes on doing so.
export function waits() {
  return location.pathname === PLACE || sessionStorage.getItem(NAME) !== null;
}

export async function waitForWords() {
  const mine = JSON.parse(sessionStorage.getItem(NAME));
  if (!mine) return location.replace("/approvals");
  for (;;) {
    const { state, words } = await look(mine.key);
    if (state === "opened") {
      showTemplate(state);
      say("words", words);
    } else if (state !== "silent") {
      return end(mine, state);
    }
    say("trouble", state === "silent" ? "The daemon does not answer." : "");
    await new Promise((resolve) => { setTimeout(resolve, ASK_MS); });
  }
}

// Only now do other tabs learn the key: before, it was nobody's.
function end(mine, state) {
  sessionStorage.removeItem(NAME);
  const led = location.pathname !== PLACE;
  if (state === "confirmed") keep(mine.key);
  else if (!led) return showTemplate(state);
  return led ? location.reload() : location.replace(mine.next);
}

async function look(key) {
  try {
    const answer = await callWith(key, "/handover/state");
    return answer.ok ? await answer.json() : { state: "void" };
  } catch (error) {
    return { state: "silent" };
  }
}
