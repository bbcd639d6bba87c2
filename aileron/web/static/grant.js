// The form of a grant for similar calls, and its JSON for the decision.

import { firstMeaning } from "./later.js";

const HOUR_MS = 3600 * 1000;

// Add the handlers that show only the fields that each choice needs.
export function armGrant(article) {
  const form = article.querySelector("#grant");
  const selects = [...form.querySelectorAll("select[data-argument]")];
  const showAll = () => {
    selects.forEach(show);
    form.querySelector("#until").parentElement.hidden = form.querySelector("#lasting").value !== "";
  };
  [...selects, form.querySelector("#lasting")].forEach((each) => each.addEventListener("change", showAll));
  showAll();
}

// Return the grant. Throw an error that names the field if one is invalid.
export function grantOf(form) {
  const chosen = [...form.querySelectorAll("select[data-argument]")].filter((each) => each.value);
  const hours = form.querySelector("#lasting").value;
  const until = form.querySelector("#until");
  return {
    predicates: chosen.map(predicate),
    uses: form.querySelector("#uses").valueAsNumber,
    not_after: hours
      ? new Date(Date.now() + Number(hours) * HOUR_MS).toISOString()
      : firstMeaning(until, "Nothing was decided. Choose when the grant expires."),
    session: form.querySelector("#whose").value === "session",
  };
}

function show(select) {
  for (const fields of select.closest(".allowed").querySelectorAll(".of")) {
    fields.hidden = fields.dataset.of !== select.value;
  }
}

function predicate(select) {
  const { argument } = select.dataset;
  const fields = select.closest(".allowed").querySelector(`.of[data-of="${CSS.escape(select.value)}"]`);
  const part = (name) => fields.querySelector(`[data-part=${name}]`);
  const given = {
    any: () => null,
    pattern: () => part("pattern").value,
    domain: () => part("domain").value.split(/[\s,;]+/).filter(Boolean),
    range: () => bounds(part("minimum"), part("maximum")),
    one_of: () => lines(part("one_of"), argument),
  };
  return { argument, kind: select.value, given: given[select.value]() };
}

function bounds(minimum, maximum) {
  const ends = Object.entries({ minimum, maximum }).filter(([, field]) => field.value !== "");
  return Object.fromEntries(ends.map(([name, field]) => [name, field.valueAsNumber]));
}

function lines(field, argument) {
  const each = field.value.split("\n").filter((line) => line.trim());
  if (field.dataset.as === "text") return each;
  try {
    return each.map((line) => JSON.parse(line));
  } catch (error) {
    throw new Error(`A line for ${argument} is not valid JSON. Nothing was decided. Correct the line.`);
  }
}
