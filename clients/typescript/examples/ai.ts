// Memory and tools in Vercel's AI SDK: npm install ai zod. AI_GATEWAY_API_KEY=… node ai.ts, beside a server.
import { createGateway, generateText, isStepCount, wrapLanguageModel } from "ai";
import { connect } from "loom-bridge";
import { recall, tools } from "loom-bridge/ai";

const gateway = createGateway({ baseURL: process.env["AI_GATEWAY_BASE_URL"] ?? "https://ai-gateway.vercel.sh/v4/ai" });

await using loom = connect({ agentId: "notes-2", sessionId: crypto.randomUUID() });
await loom.memorySave("Ann is allergic to pears");
const { text } = await generateText({
  model: wrapLanguageModel({ model: gateway("anthropic/claude-sonnet-4-6"), middleware: recall(loom) }),
  tools: await tools(loom, ["memory:save"]),
  stopWhen: isStepCount(5),
  prompt: "What is Ann allergic to? Keep in memory, too, that she likes plums.",
});
console.log(text);
