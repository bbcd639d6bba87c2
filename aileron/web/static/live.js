// The daemon's event stream. One tab of the browser reads it and notifies the others.

import { call, isMoved } from "./key.js";
import { makeBackOff, restFor } from "./retry.js";

const NAME = "aileron-events";
const SILENT_MS = 40000;
const channel = new BroadcastChannel(NAME);
const backOff = makeBackOff();
let live = false;

// Return whether the event stream is connected. If it is not, pages poll more often.
export function isLive() {
  return live;
}

// Call told at each event, and when the stream connects or disconnects. A browser opens few connections to one site, so
// only the tab that holds the lock reads the stream.
export function listen(told) {
  channel.onmessage = ({ data }) => {
    live = data.live;
    told();
  };
  navigator.locks.request(NAME, async () => {
    while (!isMoved()) {
      await follow(told).catch(() => {});
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

// Read the stream until it ends or is silent for too long. A chunk that is only a comment is a keep-alive.
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
