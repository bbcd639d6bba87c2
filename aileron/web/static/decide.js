// Decides one approval. The decision is sent with the digest of the request that the page shows.

import { send } from "./act.js";
import { armEdit, discard } from "./edit.js";
import { armForce } from "./force.js";
import { armGrant } from "./grant.js";
import { decideEach } from "./batch.js";
import { go, nextOf, tell, undoOf } from "./inbox.js";
import { approvalOf, argumentsOf, intentOf, shownOf } from "./intent.js";
import { now } from "./key.js";
import { armLater, isLater, laterOf } from "./later.js";
import { followLevel, onlyWatches } from "./level.js";
import { armReading, showUnread, unread } from "./reading.js";

const SETTLE_MS = 500;
const SURE_MS = 10000;
// An approval by keyboard can be undone for this time, since a key is pressed by mistake more easily than a button.
const HOLD_MS = 5000;
const BUTTONS = ["deny", "change", "approve"];
const ALL = [...BUTTONS, "alone"]; // the last one is there only if this login may force an approval

// Add the handlers of the decision buttons. They are enabled only a moment after the request appears, so that a click
// meant for something else does not decide.
export function armDecision(article, look) {
  if (!article.querySelector("#decision")) return;
  armReasons(article);
  armEdit(article);
  armLater(article);
  armGrant(article);
  armReading(article, () => enable(article));
  followLevel(article, () => enable(article));
  for (const event of ["input", "change", "toggle"]) {
    article.addEventListener(event, () => follow(article), { capture: true });
  }
  article.querySelector("#does").dataset.usual = article.querySelector("#does").textContent;
  follow(article);
  settle(article);
  buttonsOf(article).forEach((button) => button.addEventListener("click", async (event) => {
    if (button.id === "approve" && !isSure(article, button)) return;
    disable(article);
    const next = button.id === "change" ? undefined : nextOf(article);
    const shown = shownOf(article);
    const holds = button.id === "approve" && (event.detail === 0 || shown.length > 1) && !isLater(article);
    const held = holds ? new Date(now() + HOLD_MS).toISOString() : "";
    const trouble = await act(article, button.id, held);
    article.querySelector("#answer").textContent = trouble;
    if (trouble) {
      enable(article);
      button.focus();
      await look();
      return;
    }
    if (button.id !== "change") announce(article, button.id === "approve", held, shown);
    await goOn(article, next, look);
  }));
  armForce(article, look, (reason) => force(article, reason, look));
}

async function goOn(article, next, look) {
  if (next) return go(article, next, look);
  document.querySelector("#main h1").focus();
  await look();
}

// Approve alone, although others have to approve. Return the error as text, or "".
async function force(article, reason, look) {
  const { id, digest } = article.dataset;
  const next = nextOf(article);
  disable(article);
  const trouble = await work(article, () => {
    const later = isLater(article) ? { not_before: laterOf(article) } : {};
    const body = { approved: true, digest, forced: true, reason, ...later };
    return send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/decide`, body);
  });
  if (trouble) {
    enable(article);
    return trouble;
  }
  article.querySelector("#force").close();
  announce(article, true, "", [article]);
  await goOn(article, next, look);
  return "";
}

// Return true if the press may approve. If there is a red warning, the first press asks for a second one.
function isSure(article, button) {
  if (article.dataset.severity !== "high" || button.dataset.asked) {
    delete button.dataset.asked;
    return true;
  }
  const place = button.querySelector("span");
  const words = place.textContent;
  button.dataset.asked = "yes";
  place.textContent = "Confirm: approve in spite of the red warning";
  settle(article);
  button.disabled = true;
  setTimeout(() => { if (document.activeElement === document.body) button.focus(); }, SETTLE_MS + 50);
  setTimeout(() => {
    if (!button.dataset.asked) return;
    delete button.dataset.asked;
    place.textContent = words;
  }, SURE_MS);
  return false;
}

// Announce the decision in the toast, since the next request is shown in this one's place.
function announce(article, approved, held, shown) {
  const many = shown.length > 1 ? ` ${shown.length}` : "";
  const words = `${approved ? "Approved" : "Denied"}${many}: ${article.querySelector("h1 .title")?.textContent ?? ""}`;
  tell(words, article.dataset.id, held ? undoOf(shown.map(({ id }) => id), held) : null);
}

// Require the reading of parts that were replaced, after a partial update of the same request.
export function rearm(article) {
  if (!article.querySelector("#decision")) return;
  armReading(article, () => enable(article));
  follow(article);
}

// Disable the buttons of a request that has changed in the daemon, and show a notice. The old content stays readable.
export function outdate(article, showNow) {
  if (article.dataset.outdated) return;
  const buttons = [...article.querySelectorAll("button")];
  const atButton = buttons.includes(document.activeElement);
  article.dataset.outdated = "yes";
  buttons.forEach((each) => { each.disabled = true; });
  article.querySelector("dialog[open]")?.close();
  const notice = document.getElementById("changed").content.cloneNode(true);
  const button = notice.querySelector("#look");
  button.addEventListener("click", showNow);
  (article.querySelector(".bar")?.firstElementChild ?? article.firstElementChild).before(notice);
  if (atButton) button.focus();
}

// Update the label of the button that approves or checks. A changed label disables the button for a moment again.
function follow(article) {
  const { button, words, does, missing, deny } = intentOf(article);
  const [no] = buttonsOf(article, ["deny"]);
  if (no.firstElementChild.textContent !== deny) no.firstElementChild.textContent = deny;
  const place = article.querySelector("#does");
  const told = does || place.dataset.usual;
  if (place.textContent !== told) place.textContent = told;
  article.dataset.missing = missing;
  const shown = article.querySelector("#approve > span");
  const asked = article.querySelector("#approve").dataset.asked;
  const same = button === "change" || asked || shown.textContent === words;
  if ((same && !article.querySelector(`#${button}`).hidden) || article.dataset.outdated) return enable(article);
  const focused = document.activeElement.matches("#approve, #change");
  article.querySelector("#approve").hidden = button !== "approve";
  article.querySelector("#change").hidden = button !== "change";
  if (button === "approve") shown.textContent = words;
  if (focused) article.querySelector(".bar").focus();
  settle(article);
}

function settle(article) {
  const turn = String(Number(article.dataset.turn ?? 0) + 1);
  Object.assign(article.dataset, { turn, settled: "" });
  disable(article, ["change", "approve", "alone"]);
  setTimeout(() => {
    if (article.dataset.turn !== turn) return;
    article.dataset.settled = "yes";
    enable(article);
  }, SETTLE_MS);
}

function buttonsOf(article, ids = BUTTONS) {
  return ids.map((id) => article.querySelector(`#${id}`));
}

function enable(article) {
  const { outdated, settled, missing, busy } = article.dataset;
  showUnread(article);
  if (onlyWatches()) return disable(article);
  if (outdated || !settled || busy) return;
  const [deny, change, approve, alone] = buttonsOf(article, ALL);
  deny.disabled = false;
  change.disabled = change.hidden;
  const isRefused = article.querySelector("#refused") !== null; // by the action's rule; the text says why
  const isOpen = approve.hidden || missing !== "" || unread(article).length > 0;
  approve.disabled = isRefused || isOpen;
  if (alone) alone.disabled = isOpen;
}

function disable(article, ids = ALL) {
  buttonsOf(article, ids).forEach((button) => { if (button) button.disabled = true; });
}

function act(article, button, held) {
  return work(article, () => (button === "change" ? change(article) : decide(article, button === "approve", held)));
}

// Return the result of a request, which is an error as text or "". The buttons stay disabled meanwhile.
async function work(article, request) {
  article.dataset.busy = "yes";
  try {
    return await request();
  } catch (problem) {
    return problem.message;
  } finally {
    delete article.dataset.busy;
  }
}

async function decide(article, approved, held) {
  const reason = article.querySelector("#reason").value.trim();
  const more = { ...(reason ? { reason } : {}), ...(held ? { not_before: held } : {}), ...(approved ? approvalOf(article) : {}) };
  const list = shownOf(article).map(({ id, digest }) => [id, { approved, digest, ...more }]);
  if (list.length === 1) return send("POST", `/v1/action-approvals/${encodeURIComponent(list[0][0])}/decide`, list[0][1]);
  const troubles = [];
  await decideEach(list, (_, trouble) => trouble && troubles.push(trouble));
  if (!troubles.length) return "";
  return `${list.length - troubles.length} of ${list.length} ${approved ? "approved" : "denied"}. ${[...new Set(troubles)].join(" ")}`;
}

// Send the edited arguments. Return the error as text, or "". The edited request replaces this one without a notice, and
// has to be read in full before it can be approved.
async function change(article) {
  const { id, digest } = article.dataset;
  const args = argumentsOf(article);
  const trouble = await send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/edit`, { args, digest });
  if (!trouble) {
    article.dataset.left = "yes";
    discard(article.querySelector("#edit"));
    article.querySelector("#edit").open = false;
  }
  return trouble;
}

// Add the handlers of the suggested reasons, which fill in the field. A button that ends the session also sends the
// reason that was typed.
function armReasons(article) {
  const reason = article.querySelector("#reason");
  article.querySelectorAll("[data-reason]").forEach((chip) => chip.addEventListener("click", () => {
    reason.value = chip.dataset.reason;
    reason.focus();
  }));
  article.addEventListener("click", ({ target }) => {
    const typed = reason.value.trim();
    if (typed && target.matches(".deny-all")) target.dataset.body = JSON.stringify({ reason: typed });
  }, { capture: true });
}
