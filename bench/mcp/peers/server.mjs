// A server made of the Node SDK and fetch: its one tool asks the run endpoint, as aileron-mcp does.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const { BENCH_URL: url, BENCH_TOKEN: token } = process.env;
const server = new Server({ name: "peer", version: "1" }, { capabilities: { tools: {} } });
const tool = { name: "noop", description: "Does nothing.", inputSchema: { type: "object" } };

server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool] }));
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
  const answer = await fetch(`${url}/v1/actions/noop/run`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ args: params.arguments, idempotency_key: crypto.randomUUID() }),
  });
  return { content: [{ type: "text", text: await answer.text() }], isError: !answer.ok };
});
await server.connect(new StdioServerTransport());
