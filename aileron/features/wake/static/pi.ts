// An extension of pi: when a turn has ended, it waits for outcomes of actions that were decided late, and starts a turn
// with each. Added by `aileron launch` for as long as pi runs.

const { AILERON_URL: url, AILERON_TOKEN: token, AILERON_WAKE: mode = "" } = process.env;
const WAIT_SECONDS = 300;
const GRACE_MILLISECONDS = 10_000;

async function post(path: string, body: any, signal?: AbortSignal): Promise<any> {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body), signal });
  return answer.ok ? answer.json() : undefined;
}

const pause = () => new Promise((over) => setTimeout(over, 1000).unref());

export default function (pi: any) {
  let own = new AbortController();

  // Wait for outcomes until none can come, or a later turn waits instead. A daemon that is away is tried for a while.
  async function wait(conversation: string): Promise<void> {
    own.abort();
    const { signal } = (own = new AbortController());
    let lost = 0;
    while (!signal.aborted) {
      let answer: any;
      try {
        answer = await post("/v1/wake", { conversation, wait: WAIT_SECONDS }, signal);
        lost = 0;
      } catch {
        lost ||= Date.now();
        if (Date.now() - lost > GRACE_MILLISECONDS) return;
        await pause();
        continue;
      }
      if (answer?.outcome) {
        const message = { customType: "aileron-wake", content: answer.outcome.message, display: true };
        pi.sendMessage(message, { triggerTurn: true, deliverAs: "followUp" });
        return; // the end of that turn waits again
      }
      if (!answer?.waiting) return;
    }
  }

  pi.on("session_start", async (_event: any, ctx: any) => {
    await post("/v1/wake/conversation", { conversation: ctx.sessionManager.getSessionId() }).catch(() => {});
  });
  pi.on("agent_end", async (_event: any, ctx: any) => {
    if (mode === "waits") wait(ctx.sessionManager.getSessionId()).catch(() => {});
  });
  pi.on("session_shutdown", async () => own.abort());
}
