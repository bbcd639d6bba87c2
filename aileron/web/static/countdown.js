// Countdowns to scheduled starts, by this machine's clock. They are for display only: the daemon starts the runs.

const TICK_MS = 1000;

export function count(root) {
  for (const place of root.querySelectorAll("[data-begins]")) {
    const left = Math.ceil((Date.parse(place.dataset.begins) - Date.now()) / TICK_MS);
    place.textContent = left > 0 ? `in ${spelled(left)}` : "now";
  }
}

setInterval(() => count(document), TICK_MS);

function spelled(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}
