// Opens a session for an agent of the account that is signed in, and shows its token once. It is kept nowhere.

import { callJSON, told } from "./act.js";

const SETTLE_MS = 500;
const SILENT = "The daemon did not respond. If a session was opened, it is listed above: end it and try again.";
const LOGGED_OUT = "You are no longer logged in. Nothing was opened.";

export function arm(root, look) {
  const form = root.querySelector("#connect-agent");
  if (!form) return;
  const button = form.querySelector(".yes");
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    show(form, "");
    form.querySelector(".answer").textContent = await connect(form);
    await look();
    button.disabled = false;
  });
}

// Open the session and show its token. Return the error as text, or "".
async function connect(form) {
  const agent = form.querySelector("#agent-name").value.trim();
  const minutes = Math.round(form.querySelector("#agent-hours").valueAsNumber * 60);
  try {
    const answer = await callJSON("POST", `/v1/people/${encodeURIComponent(form.dataset.name)}/sessions`, { agent, minutes });
    if (!answer) return LOGGED_OUT;
    const found = await answer.json();
    if (!answer.ok) return told(found.error);
    show(form, found.token);
    return "";
  } catch (error) {
    return SILENT;
  }
}

function show(form, token) {
  const line = token && `AILERON_TOKEN=${token}`;
  form.querySelector("#agent-token").textContent = line;
  form.querySelector("#copy-token").dataset.copy = line;
  form.querySelector("#connected").hidden = !token;
  if (token) form.querySelector("#copy-token").focus();
}
