// Trusting files: what is sent names the digest of exactly the text that stands above the button.

import { send } from "./act.js";

const SETTLE_MS = 500;
const ASKED = "button[data-digest]";

export function armTrust(root, changed) {
  const texts = [...root.querySelectorAll(ASKED)];
  const words = asked(root);
  texts.forEach((button, index) => arm(button, changed, () => trust([words[index]])));
  root.querySelectorAll("#trust-all").forEach((button) => arm(button, changed, () => trust(words)));
  root.querySelectorAll("button.distrust").forEach((button) => arm(button, changed, () => distrust(button.dataset)));
}

// Whether a page may take the place of another without anything in it that is asked and was not there to be read.
// After the person's own word there is less to read, or what they took back; else it must be the same.
export function isRead(before, now) {
  const was = asked(before);
  const is = asked(now);
  const own = before.dataset.own;
  const alike = (one, other) => ["kind", "name", "digest"].every((part) => one[part] === other[part]);
  const fresh = is.filter((one) => !was.some((other) => alike(one, other)) && own !== `${one.kind} ${one.name}`);
  return !was.length || (!fresh.length && (own !== undefined || is.length === was.length));
}

function asked(root) {
  const buttons = [...root.querySelectorAll(ASKED)];
  return buttons.map(({ dataset: { kind, name, digest } }) => ({ kind, name, digest }));
}

// Buttons come alive a moment after their text was shown, so that no click meant for something else trusts it; and where
// a file makes changes without asking, once its name was typed.
function arm(button, changed, act) {
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
