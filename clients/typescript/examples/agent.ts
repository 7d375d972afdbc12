// An agent on Anthropic's Messages API: the model answers a question with the server's tools.
// ANTHROPIC_API_KEY=… node agent.ts, beside a server (npx loom-bridge).
import { connect } from "loom-bridge";
import { Role } from "loom-bridge/v1";

const url = `${process.env["ANTHROPIC_BASE_URL"] ?? "https://api.anthropic.com"}/v1/messages`;
const headers = { "x-api-key": process.env["ANTHROPIC_API_KEY"] ?? "", "anthropic-version": "2023-06-01", "content-type": "application/json" };
const model = "claude-sonnet-4-6";

type Block = { type: string; text?: string; id: string; name: string; input: object };

await using loom = connect({ agentId: "notes-1", sessionId: crypto.randomUUID() });
const content = "Note in harbour.txt that the harbour is closed until Monday. What does it say then?";
await loom.sessions.appendMessages({ messages: [{ role: Role.USER, content }] });
for (;;) {
  const { request } = await loom.prompt("", { format: "anthropic", model, system: "You keep notes in files." });
  const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify({ model, max_tokens: 1024, ...request }) });
  const blocks = ((await reply.json()) as { content: Block[] }).content;
  await loom.sessions.appendMessages({ messages: [{ role: Role.ASSISTANT, blocksJson: JSON.stringify(blocks) }] });
  const calls = blocks.filter((block) => block.type === "tool_use");
  for (const { id, name, input } of calls) {
    await loom.tool(name, input, { callId: id });
  }
  if (calls.length === 0) {
    console.log(blocks.at(-1)?.text);
    break;
  }
}
