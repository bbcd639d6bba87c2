// Browser login. This tab creates a key and shows two words. Once they are typed in the terminal, the key is stored as
// the browser's login. A login starts with the form of a private file, or with a code that the person enters.

import { NAME, PLACE } from "./entering.js";
import { MOVED, callWith, findKey, findLogin, isBusy, keep, makeKey, post, registerAgain, registerKey } from "./key.js";
import { assertion, made } from "./passkey.js";
import { say, showTemplate } from "./view.js";

const ASK_MS = 700;
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
let hasMade = false;
const NO_KEYS = "You cannot log in at this address: browsers keep keys only on secure sites. Use localhost instead.";

// Register a key and open the page that shows the words, since a reload of this page would post the form again.
export async function begin(pageKey, next) {
  if (!window.isSecureContext) return say("trouble", NO_KEYS);
  try {
    const refused = await wait(pageKey, next, "trouble");
    if (refused) showTemplate(refused);
  } catch (error) {
    say("trouble", NOT_KEPT);
  }
}

// Register this tab's key and open the page that shows the words. If the daemon refuses, return the template or reason.
// The code is used up, so only the registration is tried again. If it is refused after an attempt without an answer, the
// code may have been valid ("cut_off"). If the browser has a login already, that login keeps its key and may decide
// again. If the daemon does not know that login, a new key is registered.
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

// Send the code once, however often the button is pressed: a second use of the code would end the login.
export async function bringCode(form) {
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

// Redeem a code and open the page that shows the words. If that fails, return the reason.
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

export async function waitForWords() {
  const mine = JSON.parse(sessionStorage.getItem(NAME));
  if (!mine) return location.replace("/approvals");
  const key = await findKey(mine.id);
  for (;;) {
    const { state, words, passkey, adds_passkey: adds } = await look(key);
    if (state === "opened") {
      const hidden = adds && !hasMade;
      showTemplate(hidden ? "opened_new_passkey" : passkey ? "opened_passkey" : state);
      if (hidden) armNewPasskey(key);
      else say("words", words);
      if (passkey) armTouch(key);
    } else if (state !== "silent") {
      return end(mine, key, state);
    }
    say("trouble", state === "silent" ? SILENT : "");
    await pause();
  }
}

// The prompt starts by a click only. The daemon's next state tells that the browser was let in.
function armTouch(key) {
  const button = document.getElementById("use-passkey");
  if (button.dataset.armed) return;
  button.dataset.armed = "yes";
  button.addEventListener("click", async () => {
    button.disabled = true;
    say("passkey-refused", "");
    say("passkey-refused", await touch(key));
    button.disabled = false;
  });
}

// The words are shown once the passkey was made: typed in the terminal, they add it and log this browser in.
function armNewPasskey(key) {
  const button = document.querySelector("#new-passkey button");
  if (button.dataset.armed) return;
  button.dataset.armed = "yes";
  button.addEventListener("click", async () => {
    button.disabled = true;
    say("new-passkey-refused", "");
    const trouble = await makePasskey(key, document.getElementById("new-passkey-name").value.trim() || "My passkey");
    hasMade = !trouble;
    if (trouble) say("new-passkey-refused", trouble);
    button.disabled = false;
  });
}

// Have the browser make a passkey, and propose it to the daemon. Return the error as text, or "".
async function makePasskey(key, name) {
  const ask = async (body) => {
    const headers = { "Content-Type": "application/json" };
    const answer = await callWith(key, "/handover/new-passkey", { method: "POST", headers, body: JSON.stringify(body) });
    return answer.ok ? { options: await answer.json() } : { trouble: await answer.text() };
  };
  try {
    const { options, trouble } = await ask({});
    if (trouble) return trouble;
    const credential = await made(options);
    if (!credential) return "No passkey was created. Try again, or press Ctrl-C in the terminal.";
    return (await ask({ name, credential })).trouble ?? "";
  } catch (error) {
    return SILENT;
  }
}

// Have a passkey sign this tab's login. Return the error as text, or "".
async function touch(key) {
  const ask = async (body) => {
    const headers = { "Content-Type": "application/json" };
    const answer = await callWith(key, "/handover/passkey", { method: "POST", headers, body: JSON.stringify(body) });
    return answer.ok ? { told: await answer.json() } : { trouble: await answer.text() };
  };
  try {
    const asked = await ask({});
    if (asked.trouble) return asked.trouble;
    const answered = await assertion(asked.told);
    if (!answered) return "Your passkey was not used. Try again, or type the two words.";
    return (await ask(answered)).trouble ?? "";
  } catch (error) {
    return SILENT;
  }
}

function pause() {
  return new Promise((resolve) => { setTimeout(resolve, ASK_MS); });
}

// End the wait. If the words were confirmed, store the key for all tabs and open the wanted page.
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
