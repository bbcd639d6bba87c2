// Retries with growing delays, and at once when the browser is online again or the tab becomes visible.

const FIRST_MS = 1000;
const LONGEST_MS = 30000;
const wakers = new Set();

export function makeBackOff() {
  let failures = 0;
  return {
    reset() { failures = 0; },
    // Count one more failure, and return the delay in milliseconds.
    next() {
      failures += 1;
      return Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1));
    },
  };
}

// Wait for this time, or until the browser is online again or the tab becomes visible.
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
