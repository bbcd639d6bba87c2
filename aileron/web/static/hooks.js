// Connects the scripts of features with the page: features register functions, and the page calls them.

const drawers = [];
const hearers = [];
let visit = null;

// Register a function that is called with the root element of each page that is shown.
export function onShown(draw) {
  drawers.push(draw);
}

// Register a function that is called with each response to a page's own polling: null if nobody is logged in, undefined
// if the daemon did not respond.
export function onAnswer(hear) {
  hearers.push(hear);
}

// Open a page of the daemon in this tab, or in a new tab if this one has text that was typed and not saved.
export function openPage(path) {
  visit?.(path);
}

export function armHooks(opens) {
  visit = opens;
}

export function drawHooks(root) {
  drawers.forEach((draw) => draw(root));
}

export function tellHooks(answer) {
  hearers.forEach((hear) => hear(answer));
}
