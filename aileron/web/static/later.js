// The start time of an approval, chosen in this machine's time zone and sent as UTC.

const HOUR_MS = 3600 * 1000;
const DAY_MS = 24 * HOUR_MS;
const MINUTE_MS = 60 * 1000;

export function armLater(article) {
  const field = article.querySelector("#not-before");
  article.querySelectorAll("#later .chip").forEach((chip) => chip.addEventListener("click", () => {
    field.value = local(chosen(chip.dataset));
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  }));
  article.querySelector("#start-now").addEventListener("click", () => {
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    article.querySelector("#later").open = false;
  });
}

// Return whether the approval is for later: the section is open, or a time is set even if the section is closed.
export function isLater(article) {
  return article.querySelector("#later").open || article.querySelector("#not-before").value !== "";
}

// Return the chosen start time. Throw an error if the field is empty. An ambiguous time counts as the later one, so that
// a run never starts an hour early: see meanings.
export function laterOf(article) {
  return lastMeaning(article.querySelector("#not-before"), "Nothing was decided. Choose a start time.");
}

// Return the latest moment that the field can mean, in ISO format.
function lastMeaning(field, missing) {
  return meanings(field, missing).at(-1).toISOString();
}

// Return the earliest moment that the field can mean, in ISO format, so that nothing expires an hour late.
export function firstMeaning(field, missing) {
  return meanings(field, missing)[0].toISOString();
}

// Return the moments that the field can mean, earliest first. When daylight saving time begins or ends, the clock skips
// an hour or shows it twice; a browser interprets both by the offset before the change.
function meanings(field, missing) {
  const at = new Date(field.value);
  if (Number.isNaN(at.getTime())) throw new Error(missing);
  const offset = (days) => new Date(at.getTime() + days * DAY_MS).getTimezoneOffset();
  const other = new Date(at.getTime() + (offset(1) - offset(-1)) * MINUTE_MS);
  const isSkipped = local(at) !== field.value.slice(0, local(at).length);
  return isSkipped || local(other) === local(at) ? [at, other].sort((one, two) => one - two) : [at];
}

// Return the moment that a button such as "tomorrow 9:00" stands for.
export function chosen({ hours, clock, days = 0, weekday }) {
  const now = new Date();
  if (hours) return new Date(now.getTime() + hours * HOUR_MS);
  const at = new Date(now.getFullYear(), now.getMonth(), now.getDate() + Number(days), clock);
  while (at <= now || (weekday && at.getDay() !== Number(weekday))) at.setDate(at.getDate() + 1);
  return at;
}

// Return a moment in the field's format: local time, to the minute.
function local(at) {
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}
