// The way in: this tab makes a key and shows two words; once they were typed in the terminal the key is this browser's.

import { callWith, findKey, keep, makeKey } from "./key.js";
import { say, showTemplate } from "./view.js";

const NAME = "aileron-entering";
const PLACE = "/confirm";
const ASK_MS = 700;
const LANDED = "aileron-landed";
const NO_KEYS = "You cannot log in at this address: browsers keep keys only on secure sites. Use localhost instead.";

// What landing.js noted, so that it asks for this place once: that has led here.
sessionStorage.removeItem(LANDED);

// The answer to a form must not be what a reload asks for again: another page waits.
export async function begin(pageKey, next) {
  if (!window.isSecureContext) return say("trouble", NO_KEYS);
  try {
    sessionStorage.setItem(NAME, JSON.stringify({ id: await makeKey(pageKey), next }));
  } catch (error) {
    return showTemplate("void");
  }
  location.replace(PLACE);
}

// Whether this tab waits: wherever it is led meanwhile, it goes on doing so.
export function waits() {
  return location.pathname === PLACE || sessionStorage.getItem(NAME) !== null;
}

export async function waitForWords() {
  const mine = JSON.parse(sessionStorage.getItem(NAME));
  if (!mine) return location.replace("/approvals");
  const key = await findKey(mine.id);
  for (;;) {
    const { state, words } = await look(key);
    if (state === "opened") {
      showTemplate(state);
      say("words", words);
    } else if (state !== "silent") {
      return end(mine, key, state);
    }
    say("trouble", state === "silent" ? "The daemon is not responding." : "");
    await new Promise((resolve) => { setTimeout(resolve, ASK_MS); });
  }
}

// Only now do other tabs find the key: before, it was nobody's.
async function end(mine, key, state) {
  if (state === "confirmed") await keep(key);
  sessionStorage.removeItem(NAME);
  const led = location.pathname !== PLACE;
  if (state !== "confirmed" && !led) return showTemplate(state);
  return led ? location.reload() : location.replace(mine.next);
}

async function look(key) {
  if (!key) return { state: "void" };
  try {
    const answer = await callWith(key, "/handover/state");
    return answer.ok ? await answer.json() : { state: "void" };
  } catch (error) {
    return { state: "silent" };
  }
}
