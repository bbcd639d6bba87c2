// Pairing and signing in: pages that do nothing before their button is pressed, since links are opened by scanners too.

import { keep, makeKey, post } from "./key.js";
import { digest, discovered, made } from "./passkey.js";
import { canonical } from "./sign.js";

const TAG = "aileron.signin.v1";
const ASK_MS = 1000;
const SILENT = "The daemon is not responding. Check the connection, then try again.";
const UNUSED = "The passkey was not used. Try again.";
const OPERATOR = "b3BlcmF0b3I"; // the user of the passkeys that a pairing makes
const OF_ACCOUNT = "This passkey belongs to an account, which signs in at /signin/account.";
const UNMADE = "No passkey was made. Try again; this phone needs a screen lock.";
const place = document.querySelector("[data-does]");
const button = document.getElementById("go");
// Out of the address bar at once: the code is for this page alone.
const code = decodeURIComponent(location.hash.slice(1));
if (location.hash) history.replaceState(null, "", location.pathname);
let page = "";
let options = null;

if (button) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    tell("");
    tell(await (place.dataset.does === "pair" ? pair() : signIn()));
    button.disabled = false;
  });
}

// What went wrong, or nothing. The code is sent once; a dismissed dialog can be opened again.
async function pair() {
  if (!options) {
    const found = await ask("/pair/open", { code });
    if (found.trouble) return found.trouble;
    ({ page, options } = found);
  }
  const credential = await made(options);
  if (!credential) return UNMADE;
  const { words, trouble } = await ask("/pair/passkey", { page, credential });
  if (trouble) return trouble;
  document.getElementById("words").textContent = words;
  show("waiting");
  return waitForWords();
}

async function waitForWords() {
  for (;;) {
    const { state, trouble } = await ask("/pair/state", { page });
    if (state === "confirmed") {
      show("done");
      return "";
    }
    if (trouble !== SILENT && state !== "opened") {
      show("");
      return trouble || "This phone was not paired. Run aileron phone pair again.";
    }
    await new Promise((resolve) => { setTimeout(resolve, ASK_MS); });
  }
}

async function signIn() {
  const told = await ask("/signin/nonce", {});
  if (told.trouble) return told.trouble;
  const key = await makeKey();
  const challenge = await digest(canonical([TAG, told.instance, told.nonce, key.point]));
  const credential = await discovered(challenge, told.site);
  if (!credential) return UNUSED;
  if (credential.response.userHandle !== OPERATOR) return OF_ACCOUNT;
  const { trouble, isUnknown } = await ask("/signin", { nonce: told.nonce, public_key: key.point, credential });
  if (isUnknown) forget(told.site, credential.id);
  if (trouble) return trouble;
  await keep({ id: key.id, private: key.private, instance: told.instance });
  location.replace("/approvals");
  return "";
}

// A passkey that was removed need not be offered by the phone again.
function forget(rpId, credentialId) {
  window.PublicKeyCredential?.signalUnknownCredential?.({ rpId, credentialId })?.catch(() => {});
}

async function ask(path, body) {
  try {
    const answer = await post(path, JSON.stringify(body), { "Content-Type": "application/json" });
    if (answer.ok) return await answer.json();
    return { trouble: await answer.text(), isUnknown: answer.status === 404 };
  } catch (error) {
    return { trouble: SILENT };
  }
}

function show(id) {
  for (const each of ["begin", "waiting", "done"]) document.getElementById(each).hidden = each !== id;
}

function tell(words) {
  document.getElementById("trouble").textContent = words;
}
