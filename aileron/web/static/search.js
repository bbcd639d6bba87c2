// Searches while the user types: only the results are exchanged, so that the field keeps the focus and its text.

import { addressOf, rename } from "./places.js";

const PAUSE_MS = 300;

export function arm(root, look) {
  const field = root.querySelector("form[data-place] input[type=search]");
  let timer;
  field?.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (!field.isConnected) return;
      rename(addressOf(field.form));
      look();
    }, PAUSE_MS);
  });
}
