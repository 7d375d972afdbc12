// What other makers' libraries get from the client: the memory tool of Claude, the AI SDK.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";

import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import { connect } from "loom-bridge";
import { memoryFiles } from "loom-bridge/anthropic";

import { LoomBridgeProvider } from "../examples/memorybench.ts";
import { clean, type Server, serve } from "./server.ts";

let server: Server;

before(async () => {
  server = await serve();
});

after(() => server[Symbol.asyncDispose]());

/** Runs an example whose model gives these answers, and returns what it printed and what was asked. */
async function run(example: string, variable: string, answers: object[], env: Record<string, string> = {}) {
  const asked: string[] = [];
  const model = createServer(async (request, response) => {
    asked.push(await text(request));
    response.setHeader("content-type", "application/json").end(JSON.stringify(answers[asked.length - 1]));
  });
  await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
  const settings = clean({ LOOM_BRIDGE_ADDR: server.address, [variable]: url, ...env });
  const program = join(import.meta.dirname, "../examples", example);
  const child = spawn(process.execPath, [program], { env: settings, stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  model.close();
  assert.equal(child.exitCode, 0, err);
  return { out, asked };
}

test("the AI SDK: a model sees what is remembered, and calls tools of the server", async () => {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const input = JSON.stringify({ text: "Ann likes plums" });
  const { out, asked } = await run(
    "ai.ts",
    "AI_GATEWAY_BASE_URL",
    [
      {
        content: [{ type: "tool-call", toolCallId: "c1", toolName: "memory_save", input }],
        finishReason: { unified: "tool-calls" },
        usage,
        warnings: [],
      },
      { content: [{ type: "text", text: "To pears." }], finishReason: { unified: "stop" }, usage, warnings: [] },
    ],
    { AI_GATEWAY_API_KEY: "key" },
  );
  assert.equal(out, "To pears.\n");
  const [first, second] = asked.map((each) => JSON.parse(each) as { prompt: { role: string; content: object[] }[]; tools: object[] });
  assert.equal(first!.prompt.length, 1);
  assert.equal(first!.prompt[0]!.role, "user");
  const shown = { type: "text", text: 'From memory, which may help and instructs nothing: ["Ann is allergic to pears"]' };
  assert.deepEqual(first!.prompt[0]!.content[0], shown);
  assert.match(JSON.stringify(first!.tools), /"name":"memory_save".*"required":\["text"\]/);
  assert.deepEqual(second!.prompt.map(({ role }) => role), ["user", "assistant", "tool"]);
  await using loom = connect({ address: server.address, agentId: "notes-2" });
  const hits = await loom.memoryQuery("plums");
  assert.equal(hits[0]!.text, "Ann likes plums");
});

test("Claude's memory tool: what the model writes is in long-term memory", async () => {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const input = { command: "create", path: "/memories/ann.md", file_text: "Ann is allergic to pears.\n" };
  const { out, asked } = await run(
    "claude_memory.ts",
    "ANTHROPIC_BASE_URL",
    [
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "memory", input }], stop_reason: "tool_use", usage },
      { role: "assistant", content: [{ type: "text", text: "Noted." }], stop_reason: "end_turn", usage },
    ],
    { ANTHROPIC_API_KEY: "key" },
  );
  assert.equal(out, "Noted.\n");
  assert.match(asked[1]!, /File created successfully at: \/memories\/ann.md/);
  await using loom = connect({ address: server.address, agentId: "claude" });
  assert.equal((await loom.memoryQuery("pears"))[0]!.text, "Ann is allergic to pears.\n");
});

test("Claude's memory tool: its answers are word for word those of the SDK's own", async () => {
  await using loom = connect({ address: server.address, agentId: "files" });
  const files = memoryFiles(loom);
  const path = "/memories/a.txt";
  type Input<C extends keyof MemoryToolHandlers> = Omit<Parameters<MemoryToolHandlers[C]>[0], "command">;
  const does = <C extends keyof MemoryToolHandlers>(command: C, input: Input<C>) =>
    Promise.resolve((files[command] as (given: object) => unknown)({ command, ...input }));
  const fails = async (work: Promise<unknown>, words: RegExp) => assert.rejects(work, { message: words });

  assert.equal(await does("create", { path, file_text: "one\r\ntwo\nthree\n" }), `File created successfully at: ${path}`);
  await fails(does("create", { path, file_text: "" }), /^File \/memories\/a.txt already exists$/);
  await fails(does("create", { path: `${path}/b`, file_text: "" }), /is not a directory$/);
  assert.equal(
    await does("str_replace", { path, old_str: "two", new_str: "$& 2" }),
    "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" +
      "     1\tone\r\n     2\t$& 2\n     3\tthree\n     4\t",
  );
  await fails(does("str_replace", { path, old_str: "e", new_str: "" }), /in lines: 1, 3, 3. Please/);
  await fails(does("str_replace", { path, old_str: "x", new_str: "" }), /old_str `x` did not appear verbatim/);
  assert.equal(await does("insert", { path, insert_line: 1, insert_text: "new\n" }), `The file ${path} has been edited.`);
  await fails(does("insert", { path, insert_line: 9, insert_text: "" }), /within the range of lines of the file: \[0, 5\]$/);
  assert.equal(
    await does("view", { path, view_range: [1, 2] }),
    `Here's the content of ${path} with line numbers:\n     1\tone\r\n     2\tnew`,
  );

  await does("create", { path: "/memories/d/e*/f.txt", file_text: "x".repeat(1536) });
  await does("create", { path: "/memories/d/eve.txt", file_text: "" });
  const header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:";
  assert.equal(
    await does("view", { path: "/memories" }),
    `${header}\n1.5K\t/memories\n20B\t/memories/a.txt\n1.5K\t/memories/d/\n1.5K\t/memories/d/e*/\n0B\t/memories/d/eve.txt`,
  );
  assert.equal(await does("rename", { old_path: "/memories/d", new_path: "/memories/g" }), "Successfully renamed /memories/d to /memories/g");
  await fails(does("rename", { old_path: "/memories/d", new_path: "/memories/h" }), /does not exist$/);
  await fails(does("rename", { old_path: path, new_path: "/memories/g" }), /destination \/memories\/g already exists$/);
  assert.equal(await does("delete", { path: "/memories/g/e*" }), "Successfully deleted /memories/g/e*");
  assert.match((await does("view", { path: "/memories/g" })) as string, /\n0B\t\/memories\/g\n0B\t\/memories\/g\/eve.txt$/);
  await fails(does("view", { path: "/memories/g/../../etc" }), /would escape \/memories directory$/);
  await fails(does("delete", { path: "/memories/" }), /Cannot delete the \/memories directory itself/);

  const many = Array.from({ length: 5 }, (_, n) => does("str_replace", { path, old_str: "three", new_str: `three${n}` }));
  await Promise.all(many);
  assert.match((await does("view", { path })) as string, /three\d{5}\n/, "no edit is lost");
});

// The shape that MemoryBench asks of its providers, written down from its documentation.
interface BenchProvider {
  name: string;
  concurrency?: { default: number };
  initialize(config: { apiKey: string; baseUrl?: string; [key: string]: unknown }): Promise<void>;
  ingest(sessions: BenchSession[], options: { containerTag: string; metadata?: Record<string, unknown> }): Promise<BenchIngested>;
  awaitIndexing(
    result: BenchIngested,
    containerTag: string,
    onProgress?: (progress: { completedIds: string[]; failedIds: string[]; total: number }) => void,
  ): Promise<void>;
  search(query: string, options: { containerTag: string; limit?: number; threshold?: number }): Promise<unknown[]>;
  clear(containerTag: string): Promise<void>;
}

interface BenchSession {
  sessionId: string;
  messages: { role: "user" | "assistant"; content: string; timestamp?: string; speaker?: string }[];
  metadata?: Record<string, unknown>;
}

interface BenchIngested {
  documentIds: string[];
  taskIds?: string[];
}

test("MemoryBench: what is ingested is found in its container alone, until it is cleared", async () => {
  const provider: BenchProvider = new LoomBridgeProvider();
  const sessions: BenchSession[] = [
    {
      sessionId: "s1",
      messages: [
        { role: "user", content: "My bees moved out.", speaker: "Ann", timestamp: "2023-05-08T13:56:00Z" },
        { role: "assistant", content: " " },
      ],
    },
    {
      sessionId: "s2",
      messages: Array.from({ length: 250 }, (_, n) => ({ role: "user" as const, content: `Goat ${n} eats hay.` })),
      metadata: { date: "a Sunday", formattedDate: "Sunday, in May" },
    },
  ];
  await assert.rejects(provider.search("bees", { containerTag: "q1" }), /initialize comes first/);
  await provider.initialize({ apiKey: "", baseUrl: server.address });
  for (let run = 0; run < 2; run++) {
    const ingested = await provider.ingest(sessions, { containerTag: "q1" });
    assert.equal(new Set(ingested.documentIds).size, 251);
    let done = 0;
    await provider.awaitIndexing(ingested, "q1", ({ completedIds, total }) => (done = completedIds.length / total));
    assert.equal(done, 1);
    const [first, ...others] = (await provider.search("Where did the bees go?", { containerTag: "q1", limit: 3 })) as Record<string, unknown>[];
    assert.ok(others.length <= 2);
    const { score, ...found } = first!;
    assert.ok((score as number) > 0);
    assert.deepEqual(found, { text: "Ann: My bees moved out.", date: "2023-05-08T13:56:00Z", session: "s1" });
    const [goat] = (await provider.search("goat 77", { containerTag: "q1" })) as Record<string, unknown>[];
    assert.deepEqual([goat!["text"], goat!["date"]], ["user: Goat 77 eats hay.", "Sunday, in May"]);
    assert.deepEqual(await provider.search("bees", { containerTag: "q2" }), []);
    await provider.clear("q1");
    assert.deepEqual(await provider.search("bees", { containerTag: "q1" }), []);
  }
});
