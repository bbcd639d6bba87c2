// What happens, as it happens: one tab of the browser listens, and tells the others.

import { call, isMoved } from "./key.js";
import { makeBackOff, restFor } from "./retry.js";

const NAME = "aileron-events";
const SILENT_MS = 40000;
const channel = new BroadcastChannel(NAME);
const backOff = makeBackOff();
let live = false;

// Whether news comes by itself here; where it does not, a page asks more often.
export function isLive() {
  return live;
}

// A browser has few connections for one site, so only the tab that holds the lock follows.
export function listen(told) {
  channel.onmessage = ({ data }) => {
    live = data.live;
    told();
  };
  navigator.locks.request(NAME, async () => {
    for (;;) {
      await follow(told).catch(() => {});
      if (isMoved()) return;
      announce(false, told);
      await restFor(backOff.next());
    }
  });
}

function announce(now, told) {
  live = now;
  channel.postMessage({ live });
  told();
}

// A piece that is only a comment says that the daemon is still there, and nothing else.
async function follow(told) {
  const silence = new AbortController();
  let late = setTimeout(() => silence.abort(), SILENT_MS);
  const answer = await call("/v1/events", { signal: silence.signal, headers: { "X-Aileron-Poll": "1" } });
  if (!answer?.ok) return clearTimeout(late);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    clearTimeout(late);
    if (done) return;
    late = setTimeout(() => silence.abort(), SILENT_MS);
    backOff.reset();
    if (!live || value.includes("data:")) announce(true, told);
  }
}
