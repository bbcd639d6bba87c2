// When it shall begin: by this machine's clock and time zone, sent as a moment that means the same everywhere.

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

// Whether it shall begin later: a time that was chosen counts, whether it is in view or folded away.
export function isLater(article) {
  return article.querySelector("#later").open || article.querySelector("#not-before").value !== "";
}

// The moment in the field, or an error that says what is missing. A start is never an hour early: see meanings.
export function laterOf(article) {
  return lastMeaning(article.querySelector("#not-before"), "Nothing was decided. Choose a start time.");
}

// The latest moment that a field can mean, as the daemon reads it.
function lastMeaning(field, missing) {
  return meanings(field, missing).at(-1).toISOString();
}

// The earliest one: what expires does not last an hour longer.
export function firstMeaning(field, missing) {
  return meanings(field, missing)[0].toISOString();
}

// The moments that a field can mean, earliest first. Where daylight saving time begins or ends, the clock skips an hour
// or shows it twice; a browser reads both by the time before the change.
function meanings(field, missing) {
  const at = new Date(field.value);
  if (Number.isNaN(at.getTime())) throw new Error(missing);
  const offset = (days) => new Date(at.getTime() + days * DAY_MS).getTimezoneOffset();
  const other = new Date(at.getTime() + (offset(1) - offset(-1)) * MINUTE_MS);
  const isSkipped = local(at) !== field.value.slice(0, local(at).length);
  return isSkipped || local(other) === local(at) ? [at, other].sort((one, two) => one - two) : [at];
}

// The moment that a chip names.
export function chosen({ hours, clock, days = 0, weekday }) {
  const now = new Date();
  if (hours) return new Date(now.getTime() + hours * HOUR_MS);
  const at = new Date(now.getFullYear(), now.getMonth(), now.getDate() + Number(days), clock);
  while (at <= now || (weekday && at.getDay() !== Number(weekday))) at.setDate(at.getDate() + 1);
  return at;
}

// What the field takes: the wall clock's time, to the minute.
function local(at) {
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}
