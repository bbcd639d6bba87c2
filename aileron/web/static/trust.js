// Trusting files: what is sent names the digest of exactly the text that stands above the button.

import { call } from "./key.js";

const SETTLE_MS = 500;

// Buttons come alive a moment after their text was shown, so that no click meant for something else trusts it.
export function armTrust(root, trusted) {
  const buttons = [...root.querySelectorAll("button.trust")];
  setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), SETTLE_MS);
  buttons.forEach((button) => button.addEventListener("click", async () => {
    button.disabled = true;
    const trouble = await send(button.dataset);
    button.closest("li").querySelector(".answer").textContent = trouble;
    if (!trouble) await trusted();
    else button.disabled = false;
  }));
}

async function send({ kind, name, digest }) {
  try {
    const answer = await call("/v1/trust", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ items: [{ kind, name, digest }] }),
    });
    if (!answer) return "Nobody is logged in any more; nothing was trusted.";
    return answer.ok ? "" : (await answer.json()).error.message;
  } catch (error) {
    return "The daemon did not answer. This page will show whether your word arrived.";
  }
}
