// A button that copies a command: <button data-copy="aileron credential setup builtin://slack">Copy</button>

import { say } from "./view.js";

const SHOWN_MS = 2000;

export function armCopies(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = !navigator.clipboard; // browsers have it at localhost and by https
    button.addEventListener("click", () => copy(button));
  }
}

async function copy(button) {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch (error) { // the browser does not allow it
    say("trouble", "The browser did not copy the command. Select it and copy it yourself.");
    return;
  }
  button.textContent = "Copied";
  say("said", "Copied");
  setTimeout(() => { button.textContent = words; }, SHOWN_MS);
}
