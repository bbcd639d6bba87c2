// Everything off at once: one button on every page, which says how it stands.

import { call } from "./key.js";
import { say } from "./view.js";

const SETTLE_MS = 500;
const button = document.getElementById("pause");

// Each answer tells since when everything is paused, if it is; none: nobody is logged in.
export function showPause(answer) {
  const since = answer?.headers.get("X-Aileron-Paused");
  button.hidden = !since;
  if (!since || since === button.dataset.since) return;
  button.dataset.since = since;
  const paused = since !== "no";
  button.textContent = paused ? "Resume" : "Pause everything";
  say("paused", paused ? `Paused since ${new Date(since).toLocaleString()}: nothing begins.` : "");
  settle();
}

export function armPause(changed) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    say("paused", await send(button.dataset.since === "no" ? "pause" : "resume"));
    button.dataset.since = "";
    settle();
    await changed();
  });
}

// It means another thing now than it did: a second click of the same hand must not undo the first.
function settle() {
  button.disabled = true;
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
}

async function send(what) {
  try {
    const answer = await call(`/v1/${what}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: "{}",
    });
    if (!answer) return "Nobody is logged in any more; nothing was changed.";
    return answer.ok ? "" : (await answer.json()).error.message;
  } catch (error) {
    return "The daemon did not answer. This page will show how it stands.";
  }
}
