// Buttons that copy a text: <button data-copy="aileron credential setup builtin://slack">Copy</button>

import { say } from "./view.js";

const SHOWN_MS = 2000;

// The style sheet hides the buttons without a clipboard, which is available only at localhost and over HTTPS.
export function armCopies() {
  document.documentElement.dataset.copies = navigator.clipboard ? "yes" : "no";
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-copy]");
    if (button) copy(button);
  });
}

async function copy(button) {
  if (button.dataset.copied) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch (error) { // the browser denied access to the clipboard
    say("trouble", "The browser did not copy it. Select the text and copy it yourself.");
    return;
  }
  const words = button.textContent;
  button.dataset.copied = "yes";
  button.textContent = "Copied";
  say("said", "Copied");
  setTimeout(() => {
    delete button.dataset.copied;
    button.textContent = words;
  }, SHOWN_MS);
}
