// The page key: in this origin's sessionStorage and never in a URL. Tabs ask each other for it by BroadcastChannel.

const NAME = "aileron-page-key";
const HEADER = "X-Aileron-Proof";
const QUESTION = "who has it?";
const TABS_ANSWER_MS = 300;
const DAEMON_ANSWERS_MS = 15000;
const channel = new BroadcastChannel(NAME);
const refused = new Set();

channel.onmessage = ({ data }) => {
  const mine = sessionStorage.getItem(NAME);
  if (data === QUESTION) {
    if (mine) channel.postMessage({ key: mine });
  } else if ((data.fresh || !mine) && !refused.has(data.key)) {
    sessionStorage.setItem(NAME, data.key);
  }
};

// A login replaces the cookie that all tabs share: whatever key they have is void, so they take this one.
export function keep(key) {
  sessionStorage.setItem(NAME, key);
  channel.postMessage({ key, fresh: true });
}

function forget(key) {
  refused.add(key);
  if (sessionStorage.getItem(NAME) === key) sessionStorage.removeItem(NAME);
}

async function findKey() {
  if (!sessionStorage.getItem(NAME)) {
    channel.postMessage(QUESTION);
    await new Promise((resolve) => setTimeout(resolve, TABS_ANSWER_MS));
  }
  return sessionStorage.getItem(NAME);
}

// The daemon's answer; null: nobody is logged in.
export async function call(path, options = {}) {
  const key = await findKey();
  if (!key) return null;
  const answer = await callWith(key, path, options);
  if (answer.status !== 401) return answer;
  forget(key);
  return null;
}

// The same with a key that this tab alone has.
export function callWith(key, path, options = {}) {
  return fetch(path, {
    ...options,
    headers: { ...options.headers, [HEADER]: key },
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
    signal: options.signal ?? AbortSignal.timeout(DAEMON_ANSWERS_MS),
  });
}
