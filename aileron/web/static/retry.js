// Trying again: soon at first, then less often, and at once when the browser is online or the tab is looked at again.

const FIRST_MS = 1000;
const LONGEST_MS = 30000;
const wakers = new Set();

export function makeBackOff() {
  let failures = 0;
  return {
    reset() { failures = 0; },
    // How long to wait after one more failure.
    next() {
      failures += 1;
      return Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1));
    },
  };
}

// Resolves after that time, or sooner where there is reason to try.
export function restFor(time) {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      wakers.delete(over);
      resolve();
    };
    const timer = setTimeout(over, time);
    wakers.add(over);
  });
}

function wakeAll() {
  [...wakers].forEach((over) => over());
}

addEventListener("online", wakeAll);
addEventListener("pageshow", wakeAll);
document.addEventListener("visibilitychange", () => { if (!document.hidden) wakeAll(); });
