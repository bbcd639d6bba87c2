// Trusts files. Each request is sent with the digest of the text that is shown above the button.

import { send } from "./act.js";
import { ASKED, asked } from "./asked.js";

const SETTLE_MS = 500;

export function arm(root, changed) {
  const texts = [...root.querySelectorAll(ASKED)];
  const words = asked(root);
  texts.forEach((button, index) => armButton(button, changed, () => trust([words[index]])));
  root.querySelectorAll("#trust-all").forEach((button) => armButton(button, changed, () => trust(words)));
  root.querySelectorAll("button.distrust").forEach((button) => armButton(button, changed, () => distrust(button.dataset)));
}

// Enable a button a moment after its text appears, so that a click meant for something else does not trust the file. If
// a file makes changes without asking, its name must be typed as well.
function armButton(button, changed, act) {
  const { dataset } = button.closest("section");
  const fields = button.matches(".distrust") ? [] : fieldsOf(button);
  let settled = false;
  const enable = () => {
    button.disabled = !settled || dataset.outdated !== undefined || !fields.every(isNamed);
  };
  fields.forEach((field) => field.addEventListener("input", enable));
  setTimeout(() => {
    settled = true;
    enable();
  }, SETTLE_MS);
  button.addEventListener("click", async () => {
    button.disabled = true;
    const trouble = await act();
    button.closest("li, div").querySelector(".answer").textContent = trouble;
    if (trouble) return enable();
    dataset.own = button.matches(".distrust") ? `${button.dataset.kind} ${button.dataset.name}` : "";
    return changed();
  });
}

function fieldsOf(button) {
  const around = button.closest("li") ?? button.closest("section");
  return [...around.querySelectorAll(".typed-name")];
}

function isNamed(field) {
  return field.value.trim() === field.dataset.name;
}

function trust(items) {
  return send("POST", "/v1/trust", { items });
}

function distrust({ kind, name }) {
  return send("DELETE", "/v1/trust", { kind, name });
}
