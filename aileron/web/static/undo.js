// What is approved and has not begun: how long it waits, and taking it back until then.

import { call } from "./key.js";

const SETTLE_MS = 500;
const TICK_MS = 1000;

export function armUndo(root, changed) {
  count(root);
  for (const button of root.querySelectorAll("button.undo")) {
    setTimeout(() => { button.disabled = false; }, SETTLE_MS);
    button.addEventListener("click", async () => {
      button.disabled = true;
      const trouble = await takeBack(button.dataset.id);
      button.closest(".begins").querySelector(".answer").textContent = trouble;
      await changed();
    });
  }
}

// By this machine's clock, and only to be read: when it begins is the daemon's to say.
function count(root) {
  for (const place of root.querySelectorAll("[data-begins]")) {
    const left = Math.ceil((Date.parse(place.dataset.begins) - Date.now()) / TICK_MS);
    place.textContent = left > 0 ? `in ${spelled(left)}` : "now";
  }
}

setInterval(() => count(document), TICK_MS);

function spelled(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}

async function takeBack(id) {
  try {
    const answer = await call(`/v1/action-approvals/${encodeURIComponent(id)}/withdraw`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: "{}",
    });
    if (!answer) return "Nobody is logged in any more; nothing was taken back.";
    return answer.ok ? "" : (await answer.json()).error.message;
  } catch (error) {
    return "The daemon did not answer. This page will show whether it was taken back.";
  }
}
