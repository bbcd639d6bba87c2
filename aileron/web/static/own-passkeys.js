// Adds a passkey to the account that is signed in. First the passphrase or another passkey confirms that it is its person.

import { call } from "./key.js";
import { assertion, made } from "./passkey.js";

const SETTLE_MS = 500;
const PATH = "/v1/account/passkeys";
const SILENT = "The daemon did not respond. This page will show whether the passkey was added.";
const LOGGED_OUT = "You are no longer logged in. Nothing was added.";
const UNUSED = "Your passkey was not used. Nothing was added.";
const UNMADE = "No passkey was created. If this device already has one for your account, it is listed above.";

export function arm(root) {
  const form = root.querySelector("#add-own-passkey");
  if (!form) return;
  const buttons = [...form.querySelectorAll("button")];
  const wake = () => buttons.forEach((each) => { each.disabled = false; });
  const start = async (confirm) => {
    if (!form.querySelector("#own-passkey-name").reportValidity()) return;
    buttons.forEach((each) => { each.disabled = true; });
    const told = await add(form, confirm);
    form.querySelector(".answer").textContent = told;
    if (!told) form.reset();
    wake();
  };
  setTimeout(wake, SETTLE_MS);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    start(async () => ({ passphrase: form.querySelector("#own-passphrase").value }));
  });
  form.querySelector("#confirm-own")?.addEventListener("click", () => start(confirmByPasskey));
}

// Return what confirms that it is the person, or an error as text.
async function confirmByPasskey() {
  const asked = await post(`${PATH}/ask`, {});
  return asked.trouble ? asked : await assertion(asked) ?? { trouble: UNUSED };
}

// Create a passkey and add it. Return the error as text, or "".
async function add(form, confirm) {
  try {
    const confirmed = await confirm();
    if (confirmed.trouble) return confirmed.trouble;
    const offered = await post(`${PATH}/offer`, confirmed);
    if (offered.trouble) return offered.trouble;
    const credential = await made(offered.options);
    if (!credential) return UNMADE;
    const name = form.querySelector("#own-passkey-name").value.trim();
    return (await post(PATH, { nonce: offered.nonce, name, credential })).trouble ?? "";
  } catch (error) {
    return SILENT;
  }
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await call(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer) return { trouble: LOGGED_OUT };
  const told = await answer.json();
  return answer.ok ? told : { trouble: told.error.message };
}
