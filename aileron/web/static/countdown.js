// How long it is until something begins. By this machine's clock, and only to be read: when it begins is the daemon's to say.

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
