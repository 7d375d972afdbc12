// Claude's memory tool over long-term memory: npm install @anthropic-ai/sdk. ANTHROPIC_API_KEY=… node claude_memory.ts, beside a server.
import Anthropic from "@anthropic-ai/sdk";
import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory";
import { connect } from "loom-bridge";
import { memoryFiles } from "loom-bridge/anthropic";

await using loom = connect({ agentId: "claude" });
const answer = await new Anthropic().beta.messages.toolRunner({
  model: "claude-sonnet-4-6",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Note that Ann is allergic to pears." }],
  tools: [betaMemoryTool(memoryFiles(loom))],
});
console.log(answer.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
