// A plugin of OpenCode: its permission prompts are listed in Aileron's inbox, beside its own dialog, and rules are
// asked before each call. Added by `aileron launch` for as long as OpenCode runs.

const { AILERON_URL: url, AILERON_TOKEN: token, AILERON_PROMPTS: wanted = "" } = process.env;
const DECISIONS = ["allow", "deny"];

// Send a hook's payload to the daemon, and return its reply.
async function ask(payload, signal) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const answer = await fetch(`${url}/v1/prompts/opencode`, { method: "POST", headers, body: JSON.stringify(payload), signal });
  if (!answer.ok) throw new Error(`Aileron replied ${answer.status}.`);
  return answer.json();
}

// Answer OpenCode's own prompt. Only its newer route passes the reason on to the model.
async function reply(client, { id, sessionID }, { decision, reason }) {
  const words = decision === "allow" ? "once" : "reject";
  const newer = await client._client?.post({
    url: `/permission/${encodeURIComponent(id)}/reply`,
    body: { reply: words, ...(reason ? { message: reason } : {}) },
    headers: { "Content-Type": "application/json" },
  }).catch(() => undefined);
  if (newer?.response?.ok) return;
  await client.postSessionIdPermissionsPermissionId({ path: { id: sessionID, permissionID: id }, body: { response: words } });
}

export const AileronPrompts = async ({ client, directory }) => {
  const open = new Map();
  const hooks = {};
  if (wanted.includes("asks")) {
    hooks.event = async ({ event }) => {
      const { type, properties: asked } = event;
      if (type === "permission.asked") {
        const { id, sessionID, permission, patterns = [], metadata = {} } = asked;
        const input = Object.keys(metadata).length ? metadata : { patterns };
        const payload = { event: "asks", tool: permission, input, cwd: directory, conversation: sessionID };
        open.set(id, payload);
        ask(payload)
          .then((answer) => (open.delete(id) && DECISIONS.includes(answer.decision) ? reply(client, asked, answer) : undefined))
          .catch(() => open.delete(id)); // its own dialog asks
      } else if (type === "permission.replied") {
        const id = asked.requestID ?? asked.permissionID;
        const payload = open.get(id);
        if (open.delete(id)) ask({ ...payload, event: "settled" }).catch(() => {}); // it was answered in the terminal
      }
    };
  }
  if (wanted.includes("checks")) {
    hooks["tool.execute.before"] = async ({ tool, sessionID }, { args }) => {
      if (tool.startsWith("aileron_")) return;
      const payload = { event: "checks", tool, input: args ?? {}, cwd: directory, conversation: sessionID };
      const answer = await ask(payload).catch(() => ({ decision: "deny", reason: "Aileron did not reply, so a rule of the user may not be known." }));
      if (answer.decision === "deny") throw new Error(answer.reason ?? "The user denied this.");
    };
  }
  return hooks;
};
