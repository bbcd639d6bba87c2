// Trusting files: what is sent names the digest of exactly the text that stands above the button.

import { call } from "./key.js";

const SETTLE_MS = 500;

export function armTrust(root, changed) {
  const texts = [...root.querySelectorAll("button[data-digest]")];
  const words = texts.map(({ dataset: { kind, name, digest } }) => ({ kind, name, digest }));
  texts.forEach((button, index) => arm(button, changed, () => trust([words[index]])));
  root.querySelectorAll("#trust-all").forEach((button) => arm(button, changed, () => trust(words)));
  root.querySelectorAll("button.distrust").forEach((button) => arm(button, changed, () => distrust(button.dataset)));
}

// Buttons come alive a moment after their text was shown, so that no click meant for something else trusts it.
function arm(button, changed, act) {
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
  button.addEventListener("click", async () => {
    button.disabled = true;
    const trouble = await act();
    button.closest("li, div").querySelector(".answer").textContent = trouble;
    if (!trouble) await changed();
    else button.disabled = false;
  });
}

function trust(items) {
  return send("POST", { items });
}

function distrust({ kind, name }) {
  return send("DELETE", { kind, name });
}

async function send(method, body) {
  try {
    const answer = await call("/v1/trust", {
      method,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer) return "Nobody is logged in any more; nothing was changed.";
    return answer.ok ? "" : (await answer.json()).error.message;
  } catch (error) {
    return "The daemon did not answer. This page will show whether your word arrived.";
  }
}
