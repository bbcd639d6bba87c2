// Setting a passphrase by a link, and signing in with a name. A page does nothing before its button is pressed.

import { keep, makeKey, post } from "./key.js";

const SILENT = "The daemon is not responding. Check the connection, then try again.";
const form = document.querySelector("form[data-does]");
// Out of the address bar at once: the code is for this page alone.
const code = decodeURIComponent(location.hash.slice(1));
if (location.hash) history.replaceState(null, "", location.pathname);

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  tell("");
  tell(await (form.dataset.does === "join" ? join() : signIn()));
  button.disabled = false;
});

// What went wrong, or nothing.
function join() {
  const passphrase = valueOf("passphrase");
  if (passphrase !== valueOf("again")) return "The two passphrases differ.";
  return enter("/join", { code, passphrase });
}

function signIn() {
  return enter("/signin/account", { name: valueOf("name").trim(), passphrase: valueOf("passphrase") });
}

async function enter(path, given) {
  const key = await makeKey();
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
