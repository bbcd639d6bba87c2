// Everything off at once: one button on every page, which says how it stands.

import { send } from "./act.js";
import { onClock, say } from "./view.js";

const SETTLE_MS = 500;
const button = document.getElementById("pause");
const menu = document.getElementById("menu");

// Each answer tells since when everything is paused, if it is; none: nobody is logged in.
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

// It means another thing now than it did: a second click of the same hand must not undo the first.
function settle() {
  button.disabled = true;
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
}
