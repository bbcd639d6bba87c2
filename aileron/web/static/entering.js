// Whether this tab logs in. What it then does is a script that is fetched only for that.

import { say } from "./view.js";

export const NAME = "aileron-entering";
export const PLACE = "/confirm";
const LANDED = "aileron-landed";
const CODE_FORM = "enter-code";
const SILENT = "The daemon is not responding. Check the connection, then reload this page.";

// Clear the mark of landing.js: its one reload has succeeded.
sessionStorage.removeItem(LANDED);

document.addEventListener("submit", async (event) => {
  if (event.target.id !== CODE_FORM) return;
  event.preventDefault(); // the script sends the code, and the browser never posts a form
  const entrance = await fetchEntrance();
  if (entrance) await entrance.bringCode(event.target);
  else say(event.target.querySelector("[role=alert]").id, SILENT);
});

// Return whether this tab waits for its words to be typed. It waits on every page.
export function waits() {
  return location.pathname === PLACE || sessionStorage.getItem(NAME) !== null;
}

// Fetch the script of the login. Return null if the daemon does not respond.
export function fetchEntrance() {
  return import("./entrance.js").catch(() => null);
}
