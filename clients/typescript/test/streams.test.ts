// The AI SDK's streams, with its own pretended model: tools, a cancelled stream, an error in the middle.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { isStepCount, streamText, wrapLanguageModel } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { connect, type Loom, UnavailableError } from "loom-bridge";
import { recall, tools } from "loom-bridge/ai";

import { type Server, serve } from "./server.ts";

let server: Server;

before(async () => {
  server = await serve();
});

after(() => server[Symbol.asyncDispose]());

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

type Stream = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"];
type Part = Stream extends ReadableStream<infer P> ? P : never;
type Parts = Part[];

/** A model whose answers are streams; a function makes one that is broken off. */
function model(...answers: (Parts | (() => ReadableStream<Part>))[]): MockLanguageModelV4 {
  let asked = 0;
  return new MockLanguageModelV4({
    doStream: async () => {
      const answer = answers[asked++]!;
      return { stream: typeof answer === "function" ? answer() : convertArrayToReadableStream(answer) };
    },
  });
}

const says = (...deltas: string[]): Parts => [
  { type: "text-start", id: "t" },
  ...deltas.map((delta) => ({ type: "text-delta" as const, id: "t", delta })),
];
const done: Parts = [
  { type: "text-end", id: "t" },
  { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: USAGE },
];

/** What a stream gave: each kind of part once in a row, and its text. */
async function drain(stream: AsyncIterable<{ type: string; text?: string; error?: unknown }>) {
  const kinds: string[] = [];
  const errors: unknown[] = [];
  let said = "";
  for await (const part of stream) {
    said += part.type === "text-delta" ? part.text : "";
    if (part.type === "error") {
      errors.push(part.error);
    }
    if (kinds.at(-1) !== part.type) {
      kinds.push(part.type);
    }
  }
  return { kinds, said, errors };
}

test("the AI SDK: a streamed answer calls tools, and what they said stands in the next step", async () => {
  await using loom = connect({ address: server.address, agentId: "streams", sessionId: "s" });
  await loom.memorySave("Ann is allergic to pears");
  const call = (toolCallId: string, toolName: string, input: object): Parts => [
    { type: "tool-input-start", id: toolCallId, toolName },
    { type: "tool-input-delta", id: toolCallId, delta: JSON.stringify(input) },
    { type: "tool-input-end", id: toolCallId },
    { type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) },
  ];
  const mock = model(
    [
      ...call("c1", "memory_save", { text: "Ann likes plums" }),
      ...call("c2", "fs_read_file", { path: "nowhere.txt" }),
      ...call("c3", "fs_read_file", { path: 7 }),
      { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage: USAGE },
    ],
    [...says("To ", "pears."), ...done],
  );
  const { stream } = streamText({
    model: wrapLanguageModel({ model: mock, middleware: recall(loom) }),
    tools: await tools(loom, ["memory:save", "fs:read_file"]),
    stopWhen: isStepCount(3),
    prompt: "What is Ann allergic to?",
  });
  const { kinds, said, errors } = await drain(stream);
  assert.deepEqual([said, errors], ["To pears.", []]);
  assert.deepEqual(kinds.filter((kind) => kind.startsWith("tool-") || kind === "finish-step"), [
    ...["tool-input-start", "tool-input-delta", "tool-input-end", "tool-call"],
    ...["tool-input-start", "tool-input-delta", "tool-input-end", "tool-call"],
    ...["tool-input-start", "tool-input-delta", "tool-input-end", "tool-call"],
    ...["tool-result", "finish-step", "finish-step"],
  ]);
  for (const { prompt } of mock.doStreamCalls) {
    const [first] = prompt;
    assert.match(JSON.stringify(first), /From memory.*Ann is allergic to pears.*What is Ann allergic to/);
  }
  const answers = JSON.stringify(mock.doStreamCalls[1]!.prompt.at(-1));
  assert.match(answers, /c1.*memory:save.*c2.*not found.*c3.*path/s);
  assert.equal((await loom.memoryQuery("plums"))[0]!.text, "Ann likes plums");
});

test("the AI SDK: a stream that is cancelled ends, wherever it is", async () => {
  await using loom = connect({ address: server.address, agentId: "streams", sessionId: "s" });
  for (const place of ["before", "memory", "model", "tool"]) {
    const control = new AbortController();
    const leave = () => control.abort();
    const slow = () =>
      new ReadableStream<Part>({
        start: (out) => says("To ").forEach((part) => out.enqueue(part)),
        pull: () => new Promise(() => {}),
      });
    const call: Parts = [
      { type: "tool-call", toolCallId: `${place}-1`, toolName: "memory_save", input: '{"text":"never"}' },
      { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage: USAGE },
    ];
    const asks = new Proxy(loom, {
      get: (own, name) => {
        const value = own[name as keyof Loom] as unknown;
        if (name === (place === "memory" ? "memoryQuery" : place === "tool" ? "tool" : "")) {
          leave();
        }
        return typeof value === "function" ? (value as (...given: unknown[]) => unknown).bind(own) : value;
      },
    });
    if (place === "before") {
      leave();
    }
    const { stream } = streamText({
      model: wrapLanguageModel({ model: model(place === "tool" ? call : slow), middleware: recall(asks) }),
      tools: await tools(asks, ["memory:save"]),
      stopWhen: isStepCount(2),
      prompt: "What is Ann allergic to?",
      abortSignal: control.signal,
      onError: () => {},
    });
    const seen = drain(
      (async function* () {
        for await (const part of stream) {
          if (place === "model" && part.type === "text-delta") {
            leave();
          }
          yield part;
        }
      })(),
    );
    const { kinds, errors } = await seen;
    assert.deepEqual([kinds.at(-1), errors], ["abort", []], `${place}: ${kinds.join()}`);
  }
  assert.deepEqual((await loom.memoryQuery("never")).map(({ text }) => text).filter((text) => text === "never"), []);
});

test("the AI SDK: an error in the middle of a stream is the caller's to see", async () => {
  await using loom = connect({ address: server.address, agentId: "streams", sessionId: "s" });
  const broken = () =>
    new ReadableStream<Part>({
      start: (out) => says("To ").forEach((part) => out.enqueue(part)),
      pull: (out) => out.error(new Error("the line broke")),
    });
  const ask = (answer: Parameters<typeof model>[0]) =>
    streamText({
      model: wrapLanguageModel({ model: model(answer), middleware: recall(loom) }),
      prompt: "What is Ann allergic to?",
      onError: () => {},
    });
  const { said, errors } = await drain(ask([...says("To "), { type: "error", error: new Error("the line broke") }]).stream);
  assert.deepEqual([said, errors.map(String)], ["To ", ["Error: the line broke"]]);
  await assert.rejects(drain(ask(broken).stream), /the line broke/); // As without the middleware.
  await using nobody = connect({ address: "127.0.0.1:1", agentId: "streams", timeoutMs: 100 });
  const { stream } = streamText({
    model: wrapLanguageModel({ model: model([...says("To "), ...done]), middleware: recall(nobody) }),
    prompt: "What is Ann allergic to?",
    maxRetries: 0,
    onError: () => {},
  });
  const { kinds, errors: away } = await drain(stream);
  assert.ok(!kinds.includes("text-delta"));
  assert.ok(away[0] instanceof UnavailableError, String(away[0]));
});
