// A plugin of OpenCode: when a turn has ended, it waits for outcomes of actions that were decided late, and starts a turn
// with each. Added by `aileron launch` for as long as OpenCode runs.

const { AILERON_URL: url, AILERON_TOKEN: token, AILERON_WAKE: mode = "" } = process.env;
const WAIT_SECONDS = 300;
const GRACE_MILLISECONDS = 10_000;

async function post(path, body) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return answer.ok ? answer.json() : undefined;
}

const pause = () => new Promise((over) => setTimeout(over, 1000).unref());

export const AileronWake = async ({ client }) => {
  const inner = new Set(); // conversations of subagents
  let waiting = 0;

  // Wait for outcomes until none can come, or a later turn waits instead. A daemon that is away is tried for a while.
  async function wait(conversation) {
    const own = ++waiting;
    let lost = 0;
    while (own === waiting) {
      let answer;
      try {
        answer = await post("/v1/wake", { conversation, wait: WAIT_SECONDS });
        lost = 0;
      } catch {
        lost ||= Date.now();
        if (Date.now() - lost > GRACE_MILLISECONDS) return;
        await pause();
        continue;
      }
      if (answer?.outcome) {
        const parts = [{ type: "text", text: answer.outcome.message }];
        await client.session.promptAsync({ path: { id: conversation }, body: { parts } });
        return; // the end of that turn waits again
      }
      if (!answer?.waiting) return;
    }
  }

  return {
    event: async ({ event: { type, properties } }) => {
      if (type === "session.created" && properties.info.parentID) inner.add(properties.info.id);
      else if (type === "session.created") post("/v1/wake/conversation", { conversation: properties.info.id }).catch(() => {});
      else if (type === "session.idle" && mode === "waits" && !inner.has(properties.sessionID)) wait(properties.sessionID).catch(() => {});
    },
  };
};
