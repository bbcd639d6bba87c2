// Whether this login may decide, or only watch: the daemon says so in each answer.

const root = document.documentElement;
const CHANGED = "level";

export function setLevel(level) {
  if (root.dataset.level === level) return;
  root.dataset.level = level;
  document.dispatchEvent(new Event(CHANGED));
}

export function onlyWatches() {
  return root.dataset.level === "reading";
}

// Calls a function about a page whenever this changes, as long as that page is shown.
export function followLevel(page, act) {
  const changed = () => {
    if (page.isConnected) act();
    else document.removeEventListener(CHANGED, changed);
  };
  document.addEventListener(CHANGED, changed);
}
