// The package, as its users import it, against a server as its users start it.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttp2Server, type IncomingHttpHeaders } from "node:http2";
import { createServer, connect as netConnect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import {
  AlreadyExistsError,
  CancelledError,
  Code,
  ConflictError,
  connect,
  DeadlineError,
  type Event,
  InvalidRequestError,
  LimitError,
  type Loom,
  LoomBridgeError,
  NotFoundError,
  PermissionError,
  ServerUnreachableError,
  StateError,
  type Subscription,
  timestampFromDate,
  UnauthenticatedError,
  UnavailableError,
  valueOf,
} from "loom-bridge";
import { Delivery, Role, ToolErrorCode } from "loom-bridge/v1";

import { type Server, serve } from "./server.ts";

let server: Server;
let names = 0;

before(async () => {
  server = await serve();
});

after(() => server[Symbol.asyncDispose]());

/** A client of an agent that no other test has. */
function agent(address = server.address): Loom {
  return connect({ address, agentId: `agent-${names++}`, sessionId: "s1" });
}

/** Returns the error of this class that a promise ends with. */
async function refusal<E extends LoomBridgeError>(kind: new (...args: never[]) => E, work: Promise<unknown>): Promise<E> {
  let found: unknown;
  await assert.rejects(work, (error) => ((found = error), true));
  assert.ok(found instanceof kind && found instanceof LoomBridgeError, `${kind.name} was expected: ${String(found)}`);
  assert.equal(found.name, kind.name);
  return found;
}

/** Returns the next events, by what they say. */
async function heard(events: Subscription, count: number): Promise<unknown[]> {
  const all: Event[] = [];
  while (all.length < count) {
    const { value } = await events.next();
    all.push(value!);
  }
  return all.map((event) => event.payload);
}

test("memory: what is saved is found, with all its fields", async () => {
  await using loom = agent();
  const metadata = { source: "harbour", depth: { m: [1.5, null, true, "☂"] } };
  const eventTime = timestampFromDate(new Date("2025-05-06T07:08:09Z"));

  const saved = await loom.memorySave("The tide at Dover turns at six", { metadata, tags: ["tide"], key: "dover", eventTime });
  await loom.memorySave("The tide at Calais turns at seven");
  const hits = await loom.memoryQuery("when does the tide turn at Dover?", { limit: 1, filter: 'tags:"tide"' });

  assert.equal(hits.length, 1);
  const [hit] = hits;
  assert.equal(hit!.text, "The tide at Dover turns at six");
  assert.deepEqual(hit!.metadata, metadata);
  assert.equal(hit!.record.id, saved.id);
  assert.equal(hit!.record.sessionId, "s1");
  assert.ok(hit!.score > 0 && hit!.score <= 1);
  const read = await loom.memory.getRecord({ name: { case: "key", value: "dover" } });
  assert.deepEqual(valueOf(read.metadataForm), metadata);
  assert.equal(read.eventTime!.seconds, eventTime.seconds);
});

test("memory: passages of a long record are its text", async () => {
  await using loom = agent();
  const filler = "The gulls sleep on the pier. ".repeat(200);
  await loom.memorySave(`${filler}\n\nThe lighthouse keeper is called Ada.\n\n${filler}`);
  const [hit] = await loom.memoryQuery("what is the lighthouse keeper called?", { maxTokens: 100 });
  assert.match(hit!.text, /Ada/);
  assert.ok(hit!.text.length < 1000);
});

test("tools: results, failures and bytes of a workspace", async () => {
  await using loom = agent();
  await writeFile(join(server.folder, "note.txt"), "the harbour is closed");

  const read = await loom.tool("fs:read_file", { path: "note.txt" });
  assert.ok(read.success);
  assert.equal((read.output as { content: string }).content, "the harbour is closed");
  assert.equal(read.errorCode, "UNSPECIFIED");
  assert.equal(read.response.step!.sessionId, "s1", "the session travels as metadata");

  const missing = await loom.tool("fs:read_file", { path: "no such file" }, { timeoutMs: 10_000 });
  assert.equal(missing.success, false);
  assert.equal(missing.output, null);
  assert.equal(missing.errorCode, "NOT_FOUND");
  assert.equal(missing.response.errorCode, ToolErrorCode.NOT_FOUND);
  assert.match(missing.errorMessage, /no such file/);

  const unknown = await refusal(NotFoundError, loom.tool("fs:read", {}));
  assert.equal(unknown.reason, "TOOL_NOT_FOUND");
  assert.ok(unknown.metadata["nearest"]?.startsWith("fs:read"));
  const wrong = await loom.tool("fs:read_file", { file: "note.txt" }, { callId: "c1" });
  assert.equal(wrong.errorCode, "INVALID_ARGUMENTS", "a model's mistake is a result");
});

test("tools: a call that takes too long ends in time, as a result", async () => {
  await using loom = agent();
  const slow = await loom.tool("shell:run", { command: "sleep 60" }, { timeoutMs: 200 });
  assert.equal(slow.errorCode, "TIMEOUT");
});

test("events: JSON, bytes, headers, and the rest of a topic", async () => {
  await using loom = agent();
  const bytes = new Uint8Array([0, 255, 10]);
  await loom.emit("desk.early", { n: 1 }, { type: "news", tags: ["t"], headers: { from: "desk" } });
  await loom.emit("desk.early", bytes);
  const last = await loom.emit("desk.early", undefined);
  assert.equal(last.sequence, 3n);

  const all: Event[] = [];
  for await (const event of loom.subscribe({ "desk.early": 0 })) {
    all.push(event);
    if (all.length === 3) {
      break;
    }
  }
  assert.deepEqual(all.map((event) => event.payload), [{ n: 1 }, bytes, null]);
  const { source, sessionId, type, tags, headers, time, sequence } = all[0]!;
  assert.equal(source, `agent-${names - 1}`);
  assert.deepEqual([sessionId, type, tags, headers, sequence], ["s1", "news", ["t"], { from: "desk" }, 1n]);
  assert.ok(Math.abs(time.getTime() - Date.now()) < 600_000);

  const some = loom.subscribe(["desk.early"], { since: new Date(0), eventTypes: ["news"] });
  assert.deepEqual(await heard(some, 1), [{ n: 1 }]);
  assert.deepEqual(await some.return(), { done: true, value: undefined });
  assert.deepEqual(await some.next(), { done: true, value: undefined });
});

test("events: an abort ends a wait, and so does the end of the client", async () => {
  const loom = agent();
  const stop = new AbortController();
  const one = await loom.subscribe("quiet", { signal: stop.signal }).ready();
  const two = await loom.subscribe("quiet.**").ready();
  const three = await loom.subscribe("quiet").ready();
  const [first, second, third] = [one.next(), two.next(), three.next()];
  stop.abort();
  await refusal(CancelledError, first);
  await two.return();
  assert.equal((await second).done, true, "who leaves gets no error");
  loom.close();
  assert.match((await refusal(CancelledError, third)).message, /client is closed/);
  await refusal(CancelledError, loom.memoryQuery("x"));
});

test("events: a subscription goes on behind its last event when the server comes back", async () => {
  await using own = await serve();
  await using loom = agent(own.address);
  const exact = await loom.subscribe(["news.exact"]).ready();
  const pattern = await loom.subscribe("news.*").ready();
  const emit = (text: string) => loom.emit("news.exact", text, { requestId: text });

  await emit("one");
  await loom.emit("news.other", "two", { requestId: "two" });
  assert.deepEqual(await heard(exact, 1), ["one"]);
  assert.deepEqual((await heard(pattern, 2)).sort(), ["one", "two"]);

  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    const waiting = [heard(exact, 2), heard(pattern, 3)] as const;
    await own.stop(signal);
    await own.start();
    await emit(`${signal} 1`);
    await loom.emit("news.other", "other", { requestId: signal });
    await emit(`${signal} 2`);
    assert.deepEqual(await waiting[0], [`${signal} 1`, `${signal} 2`]);
    assert.deepEqual((await waiting[1]).sort(), [`${signal} 1`, `${signal} 2`, "other"]);
  }
  assert.equal(exact.positions.get("news.exact"), 5n);
  assert.equal(exact.dropped, 0n);
});

test("prompts: a provider's request, and what stands in it", async () => {
  await using loom = agent();
  await loom.sessions.appendMessages({ messages: [{ role: Role.USER, content: "Is the harbour open?" }] });
  const options = { system: "You keep watch.", maxTokens: 4000, model: "gpt-4o" };

  const anthropic = await loom.prompt("Answer", { ...options, format: "anthropic" });
  assert.match(JSON.stringify(anthropic.request.system), /You keep watch/);
  assert.match(JSON.stringify(anthropic.request.messages), /harbour open/);
  assert.ok(anthropic.request.tools!.length > 0);
  assert.ok(anthropic.tokens > 0 && anthropic.tokens <= 4000);
  assert.ok(anthropic.receipt!.promptId);

  const chat = await loom.prompt("Answer", { ...options, format: "openai-chat", withoutTools: true });
  assert.equal(chat.request.messages[0]!["role"], "system");
  assert.equal(chat.request.tools, undefined);
  const responses = await loom.prompt("Answer", { ...options, format: "openai-responses" });
  assert.match(JSON.stringify(responses.request.input), /harbour open/);
  const gemini = await loom.prompt("Answer", { ...options, format: "gemini" });
  assert.match(JSON.stringify(gemini.request.contents), /harbour open/);
  const neutral = await loom.prompt("Answer", options);
  assert.equal(neutral.request.messages[0]!.role, Role.SYSTEM);
  assert.ok(neutral.request.tools.every((tool) => typeof tool["name"] === "string"));

  const full = await refusal(StateError, loom.prompt("Answer", { ...options, maxTokens: 20 }));
  assert.equal(full.reason, "CONTEXT_OVERFLOW");
  assert.ok(Number(full.metadata["total_tokens"]) > 20);
});

test("services: a stream from the server, and one to it", async () => {
  await using loom = agent();
  await loom.memorySave("The ferry leaves at noon", { tags: ["ferry"] });
  const lines: string[] = [];
  for await (const message of loom.transfer.export({})) {
    lines.push(...message.lines);
  }
  assert.match(lines.join("\n"), /The ferry leaves at noon/);

  await using other = agent();
  async function* given(): AsyncGenerator<{ lines: string[] }> {
    yield { lines };
  }
  assert.equal((await other.transfer.import(given())).saved, 1n);
  assert.equal((await other.memoryQuery("when does the ferry leave?")).length, 1);
  async function* broken(): AsyncGenerator<{ lines: string[] }> {
    yield { lines: ["{"] };
  }
  await refusal(InvalidRequestError, other.transfer.import(broken()));
  async function* failing(): AsyncGenerator<{ lines: string[] }> {
    yield { lines };
    throw new RangeError("the file ended");
  }
  await assert.rejects(other.transfer.import(failing()), new RangeError("the file ended"));
});

test("errors: a class for each family, with reason and values", async () => {
  await using loom = agent();
  const empty = await refusal(InvalidRequestError, loom.memorySave("", { tags: [""], importance: 2 }));
  assert.equal(empty.reason, "INVALID_REQUEST");
  assert.equal(empty.code, Code.InvalidArgument);
  assert.deepEqual(empty.violations.map((violation) => violation.field).sort(), ["importance", "tags[0]", "text"]);

  const gone = await refusal(NotFoundError, loom.memory.getRecord({ name: { case: "id", value: "none" } }));
  assert.equal(gone.reason, "RECORD_NOT_FOUND");
  assert.ok(!(gone instanceof InvalidRequestError), "one class is no other");

  const { id } = await loom.memorySave("one", { key: "k" });
  assert.equal((await refusal(AlreadyExistsError, loom.memorySave("two", { key: "k" }))).reason, "RECORD_EXISTS");
  const update = { name: { case: "id", value: id } as const, expectedVersion: 7n, record: { text: "x" }, updateMask: { paths: ["text"] } };
  const conflict = await refusal(ConflictError, loom.memory.updateRecord(update));
  assert.equal(conflict.reason, "VERSION_CONFLICT");
  assert.equal(conflict.metadata["version"], "1");
  assert.equal((await refusal(InvalidRequestError, loom.memoryQuery("x", { filter: "colour = 1" }))).reason, "INVALID_FILTER");
  const unheard = loom.emit("nobody", 1, { needsListener: true, delivery: Delivery.VOLATILE });
  assert.equal((await refusal(StateError, unheard)).reason, "NOBODY_LISTENS");
  assert.equal((await refusal(InvalidRequestError, loom.emit("agent.status", 1))).reason, "RESERVED_TOPIC");
  await using nobody = connect({ address: server.address });
  assert.equal((await refusal(InvalidRequestError, nobody.memorySave("x"))).violations[0]!.field, "agent_id");
});

test("values: hostile and large ones arrive, or are refused before they change anything", async () => {
  await using loom = agent();
  const text = `\u202e<script>'"\\ \u0001 \u{1f600} ${"ü".repeat(100_000)}`;
  await loom.memorySave(text, { key: "big", metadata: JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}') });
  const read = await loom.memory.getRecord({ name: { case: "key", value: "big" } });
  assert.equal(read.text, text);
  assert.deepEqual(Object.keys(valueOf(read.metadataForm) as object).sort(), ["__proto__", "constructor"]);
  assert.equal(({} as Record<string, unknown>)["a"], undefined);

  const large = await refusal(InvalidRequestError, loom.memorySave("x".repeat(300_000)));
  assert.equal(large.violations[0]!.field, "text");
  await refusal(LimitError, loom.emit("t", "x".repeat(20 << 20)));
  for (const wrong of [
    loom.memorySave("\ud800"),
    loom.memorySave("x", { metadata: { n: 1n } as never }),
    loom.emit("t", () => 1),
    loom.memorySave("x", { tags: ["fine", "\udfff"] }),
    loom.memoryQuery("x", { limit: 1.5 }),
  ]) {
    await assert.rejects(wrong, TypeError);
  }
  assert.deepEqual(await loom.memoryQuery("x"), [], "nothing of that was saved");
});

test("time: a deadline and an abort end a call", async () => {
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(silent.address() as { port: number }).port}`;
  try {
    await using loom = connect({ address, agentId: "a", timeoutMs: 100 });
    await refusal(DeadlineError, loom.memorySave("x"));
    await refusal(DeadlineError, loom.subscribe("x").ready());
    await refusal(CancelledError, loom.memoryQuery("x", { timeoutMs: 0, signal: AbortSignal.timeout(50) }));
    await refusal(CancelledError, loom.memoryQuery("x", { signal: AbortSignal.abort() }));
  } finally {
    silent.close();
  }
});

test("nobody answers: the error says what to do", async () => {
  await using loom = connect({ address: "127.0.0.1:1", agentId: "a" });
  const error = await refusal(ServerUnreachableError, loom.memorySave("x"));
  assert.ok(error instanceof UnavailableError);
  assert.equal(error.reason, "");
  assert.match(error.message, /no Loom Bridge server answers at 127\.0\.0\.1:1 .*npx loom-bridge --addr 127\.0\.0\.1:1/);
  await refusal(ServerUnreachableError, loom.subscribe("x").next());
});

test("a broken connection: what only reads, or has a request id, is repeated", async () => {
  const [host, port] = server.address.split(":");
  let broken = 0;
  let breaks = 1;
  // It breaks so many connections when the client speaks, and passes the others on.
  const between = createServer((socket) => {
    socket.on("error", () => {});
    if (breaks > 0) {
      socket.once("data", () => socket.destroy());
      [breaks, broken] = [breaks - 1, broken + 1];
      return;
    }
    const further = netConnect(Number(port), host);
    further.on("error", () => socket.destroy());
    socket.pipe(further).pipe(socket);
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  after(() => between.close());
  const address = `127.0.0.1:${(between.address() as { port: number }).port}`;
  for (const [work, repeated] of [
    [(loom: Loom) => loom.memoryQuery("x"), true],
    [(loom: Loom) => loom.memorySave("x", { requestId: "r1" }), true],
    [(loom: Loom) => loom.memorySave("x"), false],
  ] as const) {
    breaks = 1;
    await using loom = agent(address);
    if (repeated) {
      await work(loom);
    } else {
      await refusal(ServerUnreachableError, work(loom));
    }
  }
  assert.equal(broken, 3);
});

test("a call says who calls, also to a balancer", async () => {
  const told: IncomingHttpHeaders[] = [];
  const balancer = createHttp2Server().on("stream", (stream, headers) => {
    told.push(headers);
    stream.respond({ "content-type": "application/grpc+proto", "grpc-status": "14" }, { endStream: true });
  });
  await new Promise<void>((resolve) => balancer.listen(0, "127.0.0.1", () => resolve()));
  after(() => balancer.close());
  const address = `127.0.0.1:${(balancer.address() as { port: number }).port}`;
  await using loom = connect({ address, agentId: "it's a/b (1)", sessionId: "s", token: "t" });
  await refusal(ServerUnreachableError, loom.memorySave("x", { timeoutMs: 20_000 }));
  const said = ["loom-agent-id", "loom-agent", "loom-session-id", "authorization"].map((name) => told[0]![name]);
  assert.deepEqual(said, ["it's a/b (1)", "it%27s%20a/b%20%281%29", "s", "Bearer t"]);
  assert.match(String(told[0]!["grpc-timeout"]), /^\d+m$/);
});

test("a server with tokens", async () => {
  const folder = await mkdtemp(join(tmpdir(), "loom-ts-"));
  after(() => rm(folder, { recursive: true }));
  const file = join(folder, "callers.toml");
  const digest = createHash("sha256").update("right").digest("hex");
  await writeFile(file, `[[credential]]\ntoken_sha256 = "${digest}"\ntenant = "acme"\nagents = ["mine-*"]\n`, { mode: 0o600 });
  await using guarded = await serve("--credentials", file);
  const address = guarded.address;
  await using right = connect({ address, agentId: "mine-1", token: "right" });
  await right.memorySave("x");
  await using wrong = connect({ address, agentId: "mine-1", token: "wrong" });
  assert.equal((await refusal(UnauthenticatedError, wrong.memorySave("x"))).reason, "UNAUTHENTICATED");
  await using other = connect({ address, agentId: "yours", token: "right" });
  assert.equal((await refusal(PermissionError, other.memorySave("x"))).reason, "AGENT_NOT_OWNED");
  await refusal(UnauthenticatedError, connect({ address, agentId: "mine-1" }).subscribe("x").ready());
});

test("a server on a socket of its own", async () => {
  const socket = join(server.folder, "socket");
  await using own = await serve("--addr", `unix:${socket}`);
  assert.equal(own.address, `unix:${socket}`);
  await using loom = agent(own.address);
  await loom.memorySave("The ferry leaves at noon");
  assert.equal((await loom.memoryQuery("ferry")).length, 1);
});

const withoutOpenssl = spawnSync("openssl", ["version"]).status !== 0;

test("a server with TLS", { skip: withoutOpenssl }, async () => {
  const [key, cert] = [join(server.folder, "key.pem"), join(server.folder, "cert.pem")];
  const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=loom -addext subjectAltName=DNS:loom";
  execFileSync("openssl", [...request.split(" "), "-keyout", key, "-out", cert], { stdio: "ignore" });
  await using own = await serve("--tls-cert", cert, "--tls-key", key);
  await using loom = connect({ address: own.address, agentId: "a", tls: { caFile: cert, serverName: "loom" } });
  await loom.memorySave("x");
  await using plain = connect({ address: own.address, agentId: "a" });
  await refusal(ServerUnreachableError, plain.memorySave("x"));
  await using stranger = connect({ address: own.address, agentId: "a", tls: true });
  await refusal(ServerUnreachableError, stranger.memorySave("x"));
});

test("connect refuses what can't work", () => {
  for (const options of [
    { address: "localhost" },
    { address: "http://localhost:1" },
    { address: "h:70000" },
    { address: "a b:1" },
    { address: "" , agentId: "ä" },
    { agentId: "a\nb" },
    { agentId: " a" },
    { timeoutMs: 0 },
    { timeoutMs: NaN },
    { address: "example.org:1", token: "t" },
    { tls: { certFile: "only.pem" } },
  ]) {
    assert.throws(() => connect(options), TypeError, JSON.stringify(options));
  }
  connect({ address: "example.org:1", token: "t", tls: true }).close();
});
