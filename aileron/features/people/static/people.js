// Setting a passphrase by a link, and signing in with a name or a passkey. A page does nothing before its button is pressed.

import { keep, makeKey, post } from "./key.js";
import { digest, discovered } from "./passkey.js";
import { canonical } from "./sign.js";

const TAG = "aileron.account-signin.v1";
const OPERATOR = "b3BlcmF0b3I"; // the user of the passkeys that `aileron phone pair` makes
const UNUSED = "The passkey was not used. Try again, or sign in with your name and passphrase.";
const OF_OPERATOR = "This passkey belongs to the person who runs this Aileron, who signs in at /signin.";
const SILENT = "The daemon is not responding. Check the connection, then try again.";
const form = document.querySelector("form[data-does]");
// Out of the address bar at once: the code is for this page alone.
const code = decodeURIComponent(location.hash.slice(1));
if (location.hash) history.replaceState(null, "", location.pathname);

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(form.querySelector("button"), form.dataset.does === "join" ? join : signIn);
});
const byPasskey = document.getElementById("by-passkey");
byPasskey?.addEventListener("click", () => attempt(byPasskey, signInByPasskey));

async function attempt(button, enterPage) {
  button.disabled = true;
  tell("");
  tell(await enterPage());
  button.disabled = false;
}

// What went wrong, or nothing.
function join() {
  const passphrase = valueOf("passphrase");
  if (passphrase !== valueOf("again")) return "The two passphrases differ.";
  return enter("/join", { code, passphrase });
}

function signIn() {
  return enter("/signin/account", { name: valueOf("name").trim(), passphrase: valueOf("passphrase") });
}

// The passkey signs the key of this page, so it lets in no other.
async function signInByPasskey() {
  const key = await makeKey();
  let offered;
  try {
    const answer = await post("/signin/account/nonce", "{}", { "Content-Type": "application/json" });
    if (!answer.ok) return await answer.text();
    offered = await answer.json();
  } catch (error) {
    return SILENT;
  }
  const { nonce, site } = offered;
  const credential = await discovered(await digest(canonical([TAG, nonce, key.point])), site);
  if (!credential) return UNUSED;
  if (credential.response.userHandle === OPERATOR) return OF_OPERATOR;
  return enter("/signin/account/passkey", { nonce, credential }, key);
}

async function enter(path, given, made = null) {
  const key = made ?? await makeKey();
  let told;
  try {
    const body = JSON.stringify({ ...given, public_key: key.point });
    const answer = await post(path, body, { "Content-Type": "application/json" });
    if (!answer.ok) return await answer.text();
    told = await answer.json();
  } catch (error) {
    return SILENT;
  }
  await keep({ id: key.id, private: key.private, instance: told.instance });
  location.replace("/approvals");
  return "";
}

function valueOf(id) {
  return document.getElementById(id).value;
}

function tell(words) {
  document.getElementById("trouble").textContent = words;
}
