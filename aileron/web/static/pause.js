// The button on every page that pauses or resumes everything.

import { send } from "./act.js";
import { onClock, say } from "./view.js";

const SETTLE_MS = 500;
const button = document.getElementById("pause");
const menu = document.getElementById("menu");

// Show the pause state from an answer's header. Without an answer, nobody is logged in, and the button is hidden.
export function showPause(answer) {
  const since = answer?.headers.get("X-Aileron-Paused");
  button.hidden = !since;
  if (!since || since === button.dataset.since) return;
  button.dataset.since = since;
  const paused = since !== "no";
  button.textContent = paused ? "Resume" : "Pause everything";
  say("paused", paused ? `Paused since ${onClock(new Date(since))}. Nothing starts until you resume.` : "");
  settle();
}

export function armPause(changed) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    menu.hidePopover(); // on a narrow screen it would cover the notice
    say("paused", await send("POST", button.dataset.since === "no" ? "/v1/pause" : "/v1/resume", {}));
    button.dataset.since = "";
    settle();
    await changed();
  });
}

// Disable the button for a moment after its meaning changed, so that a double click does not undo the first click.
function settle() {
  button.disabled = true;
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
}
