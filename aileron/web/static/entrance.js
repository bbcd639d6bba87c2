// The way in: this tab makes a key and shows two words; once they were typed in the terminal the key is this browser's.
// It begins with the answer to a private file's form, or to a code that the person brings.

import { MOVED, callWith, findKey, findLogin, isBusy, keep, makeKey, post, registerAgain, registerKey } from "./key.js";
import { say, showTemplate } from "./view.js";

const NAME = "aileron-entering";
const PLACE = "/confirm";
const ASK_MS = 700;
const LANDED = "aileron-landed";
const CODE_FORM = "enter-code";
const REFUSED = {
  opened_twice: "This code was used twice, so no browser was logged in. If you did not enter it twice, another program " +
    "knows it; the audit log has recorded it. Run aileron open --code again.",
  void: "This code is not valid: mistyped, used before, or older than two minutes. Check it, or run " +
    "aileron open --code again.",
  moved: "This page has an old address, so the code was not used. Open the address that the terminal shows.",
  silent: "The daemon is not responding. Check the connection, then try again.",
  unanswered: "The daemon did not answer, so this code may be used up. Check the connection, then run " +
    "aileron open --code again.",
  cut_off: "The connection broke during the login, so no browser was logged in. Run aileron open --code again.",
};
const SILENT = "The daemon is not responding.";
const AGAIN = `${SILENT} Trying again…`;
const NOT_KEPT = "This browser cannot keep a key, so it was not logged in. Allow site data for this address, then run " +
  "aileron open again.";
const NO_KEYS = "You cannot log in at this address: browsers keep keys only on secure sites. Use localhost instead.";

// What landing.js noted, so that it asks for this place once: that has led here.
sessionStorage.removeItem(LANDED);

// The answer to a form must not be what a reload asks for again: another page waits.
export async function begin(pageKey, next) {
  if (!window.isSecureContext) return say("trouble", NO_KEYS);
  try {
    const refused = await wait(pageKey, next, "trouble");
    if (refused) showTemplate(refused);
  } catch (error) {
    say("trouble", NOT_KEPT);
  }
}

// Why this tab may not wait; nothing: it goes to where it does.  Its code is used up, so only the rest is tried again.
// A second try that is refused, when the first had no answer, says nothing of the code: that may have been taken.
// A login that this browser has already is to decide again, and keeps its key; where the daemon does not know it, a new
// one begins.
async function wait(pageKey, next, place) {
  let login = await findLogin();
  let key = login ?? await makeKey();
  for (let tries = 0; ; tries += 1) {
    const taken = await (login ? registerAgain(pageKey, login) : registerKey(pageKey, key));
    if (taken !== null) say(place, "");
    if (taken === false && login) {
      [login, key, tries] = [null, await makeKey(), tries - 1];
      continue;
    }
    if (taken === false) return tries ? "cut_off" : "void";
    if (taken) break;
    say(place, AGAIN);
    await pause();
  }
  sessionStorage.setItem(NAME, JSON.stringify({ id: key.id, next }));
  location.replace(PLACE);
}

document.addEventListener("submit", (event) => {
  if (event.target.id !== CODE_FORM) return;
  event.preventDefault(); // no page of ours may post a form by itself
  bringCode(event.target);
});

// Sent once however often it is pressed: a second use of the code would end what the first began.
async function bringCode(form) {
  const [field, button, answer] = form.querySelectorAll("input, button, [role=alert]");
  if (button.disabled) return;
  if (!window.isSecureContext) return say(answer.id, NO_KEYS);
  button.disabled = true;
  say(answer.id, "");
  const refused = await redeem(field.value, answer.id);
  if (!refused) return;
  say(answer.id, REFUSED[refused] ?? refused);
  button.disabled = false;
}

// Why it was refused; nothing: this tab goes to where it shows its words.
async function redeem(code, place) {
  let answer, text;
  try {
    answer = await post("/handover", new URLSearchParams({ code, next: location.pathname }));
    if (answer.status === MOVED) return "moved";
    text = await answer.text();
  } catch (error) {
    return answer || error.name === "TimeoutError" ? "unanswered" : "silent";
  }
  if (isBusy(answer)) return "unanswered";
  const told = JSON.parse(new DOMParser().parseFromString(text, "text/html").documentElement.dataset.told ?? "{}");
  if (!told["page-key"]) return told["turned-away"] ?? "void";
  try {
    return await wait(told["page-key"], told.next, place);
  } catch (error) {
    return NOT_KEPT;
  }
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
    say("trouble", state === "silent" ? SILENT : "");
    await pause();
  }
}

function pause() {
  return new Promise((resolve) => { setTimeout(resolve, ASK_MS); });
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
    if (isBusy(answer)) return { state: "silent" };
    if (answer.ok) return await answer.json();
    return { state: answer.status === MOVED ? "moved" : "void" };
  } catch (error) {
    return { state: "silent" };
  }
}
