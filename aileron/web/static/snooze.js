// The buttons that snooze a request until a time, in every tab and on every device, or end the snooze.

import { send } from "./act.js";
import { go, nextOf, tell } from "./inbox.js";
import { chosen } from "./later.js";

export function armSnooze(article, look) {
  const place = article.querySelector("#snooze");
  place?.addEventListener("click", async ({ target }) => {
    const button = target.closest("button");
    if (!button || button.disabled) return;
    const until = button.dataset.wake ? null : chosen(button.dataset).toISOString();
    button.disabled = true;
    const { id } = article.dataset;
    const next = until && nextOf(article);
    const trouble = await send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/snooze`, { until });
    button.disabled = false;
    place.querySelector(".answer").textContent = trouble;
    if (trouble) return;
    tell(until ? "Snoozed. It still expires." : "Back in the inbox.", id, null);
    if (next) await go(article, next, look);
    else await look();
  });
}
