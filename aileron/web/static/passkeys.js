// Adds a passkey: the browser creates it, and the page shows two words to type in the terminal.

import { call } from "./key.js";
import { made } from "./passkey.js";

const SETTLE_MS = 500;
const PATH = "/v1/operator/passkeys";

export function arm(root) {
  const form = root.querySelector("#add-passkey");
  if (!form) return;
  const button = form.querySelector("button");
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    form.querySelector(".answer").textContent = await add(root, form.querySelector("#passkey-name").value.trim());
    button.disabled = false;
  });
}

// Create a passkey and propose it to the daemon. Return the error as text, or "".
async function add(root, name) {
  const offered = await post(`${PATH}/offer`, {});
  if (offered.trouble) return offered.trouble;
  const credential = await made(offered.options);
  if (!credential) return "No passkey was created. If this browser already has one, it is listed above.";
  const { trouble, words } = await post(PATH, { name, credential });
  if (trouble) return trouble;
  root.querySelector("#passkey-words").textContent = words;
  root.querySelector("#confirm-passkey").hidden = false;
  return "";
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await call(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer) return { trouble: "You are no longer logged in. Nothing was changed." };
  const told = await answer.json();
  if (!answer.ok) return { trouble: told.error.message };
  return { ...told, options: told };
}
