// An extension of pi, which has no permission prompts of its own: rules are asked before each call. What a rule asks
// about is shown in Aileron's inbox and, if a person sits there, in pi. Added by `aileron launch` for as long as pi runs.

const { AILERON_URL: url, AILERON_TOKEN: token } = process.env;
const GONE = { decision: "deny", reason: "Aileron did not reply, so a rule of the user may not be known." };

async function ask(payload: any, signal?: AbortSignal): Promise<any> {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const answer = await fetch(`${url}/v1/prompts/pi`, { method: "POST", headers, body: JSON.stringify(payload), signal });
  return answer.ok ? answer.json() : GONE;
}

// Ask in the inbox and in pi at once. The first answer counts, and closes the other.
async function askBoth(payload: any, ctx: any): Promise<any> {
  const inbox = new AbortController();
  const dialog = new AbortController();
  const here = ctx.ui
    .confirm("Allow this call?", `${payload.tool}: ${JSON.stringify(payload.input)}`, { signal: dialog.signal })
    .then((yes: boolean) => (dialog.signal.aborted ? new Promise(() => {}) : { decision: yes ? "allow" : "deny" }));
  const there = ask({ ...payload, dialog: false }, inbox.signal).catch(() => new Promise(() => {}));
  const first = await Promise.race([here, there]);
  inbox.abort();
  dialog.abort();
  return first;
}

export default function (pi: any) {
  pi.on("tool_call", async (event: any, ctx: any) => {
    if (event.toolName.startsWith("mcp__aileron__")) return;
    const payload = { event: "checks", tool: event.toolName, input: event.input ?? {}, cwd: ctx.cwd ?? process.cwd() };
    let answer = await ask({ ...payload, dialog: Boolean(ctx.hasUI) }).catch(() => GONE);
    if (answer.decision === "ask") answer = await askBoth(payload, ctx);
    if (answer.decision === "deny") return { block: true, reason: answer.reason ?? "The user denied this." };
  });
}
