// The effect of the main button, by the state of the form: approve now, approve for later, approve and allow similar
// calls, or check the edited arguments. The button's label always says which.

import { membersOf } from "./batch.js";
import { edited, isEdited } from "./edit.js";
import { grantOf } from "./grant.js";
import { isLater, laterOf } from "./later.js";
import { onClock } from "./view.js";

// Return the requests that a press decides: the shown one, or all identical ones if their box is checked.
export function shownOf(article) {
  return membersOf(article.querySelector(".identical input:checked") ?? article);
}

// Return the button to show, its label, a sentence about its effect, the missing choice if it cannot be pressed yet, and
// the label of the button that denies.
export function intentOf(article) {
  if (isEdited(article.querySelector("#edit"))) {
    const does = "You edited the arguments. Check them before you approve, or discard your edits.";
    return { button: "change", words: "Check and preview", does, missing: "", deny: "Deny" };
  }
  const grants = article.querySelector("#grant").open;
  const at = isLater(article) ? startOf(article) : "";
  const grave = article.querySelector("#risks")?.dataset.severity === "high";
  const many = shownOf(article).length;
  const all = many > 1 ? ` all ${many}` : "";
  const words = [grave ? "Approve anyway" : `Approve${all}`, at && ` for ${onClock(new Date(at))}`, grants && " and allow similar calls", grave && "…"];
  const alone = all && grants ? "Similar calls are allowed from one request: close that section, or clear “Decide all”." : "";
  const missing = at === null ? "Choose a start time, or close “Approve for later” to approve for now." : alone;
  const held = all && "They start at least 5 s after you approve. You can undo all of them until then.";
  const does = at ? `Starts ${onClock(new Date(at))}. You can undo it until then.` : held;
  return { button: "approve", words: words.filter(Boolean).join(""), does: missing || does, missing, deny: `Deny${all}` };
}

// Return the grant and start time of the approval. Throw an error that names the field if one is invalid.
export function approvalOf(article) {
  return {
    ...(article.querySelector("#grant").open ? { grant: grantOf(article.querySelector("#grant")) } : {}),
    ...(isLater(article) ? { not_before: laterOf(article) } : {}),
  };
}

// Return the edited arguments. Throw an error that names the field if one is invalid.
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
