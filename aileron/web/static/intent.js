// What the one button that goes ahead does, as the form says now: to approve at once, for later, with more calls like
// it, or first to check what was edited.  The button's words are what a press of it does.

import { edited, isEdited } from "./edit.js";
import { grantOf } from "./grant.js";
import { isLater, laterOf } from "./later.js";
import { onClock } from "./view.js";

// What is chosen now: the button, its words, and where it cannot be pressed yet, what is missing.
export function intentOf(article) {
  if (isEdited(article.querySelector("#edit"))) {
    const does = "You edited the arguments. Check them before you approve, or discard your edits.";
    return { button: "change", words: "Check and preview", does, missing: "" };
  }
  const grants = article.querySelector("#grant").open;
  const at = isLater(article) ? startOf(article) : "";
  const go = article.querySelector("#risks")?.dataset.severity === "high" ? "Approve anyway" : "Approve";
  const words = [go, at && ` for ${onClock(new Date(at))}`, grants && " and allow similar calls"];
  const missing = at === null ? "Choose a start time, or close “Approve for later” to approve for now." : "";
  const does = at ? `Starts ${onClock(new Date(at))}. You can undo it until then.` : "";
  return { button: "approve", words: words.filter(Boolean).join(""), does: missing || does, missing };
}

// The decision that these words promise, or an error that says which field cannot be read.
export function approvalOf(article) {
  return {
    ...(article.querySelector("#grant").open ? { grant: grantOf(article.querySelector("#grant")) } : {}),
    ...(isLater(article) ? { not_before: laterOf(article) } : {}),
  };
}

// The arguments as they were edited, or an error that says which field cannot be read.
export function argumentsOf(article) {
  return edited(article.querySelector("#edit"));
}

function startOf(article) {
  try {
    return laterOf(article);
  } catch (missing) {
    return null;
  }
}
