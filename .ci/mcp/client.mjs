// A host in TypeScript's own library: it saves, finds, reads a blob back, runs a tool,
// sees progress and the end of a call that it gives up, and is refused without a token.
//
//   node client.mjs URL TOKEN
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const url = new URL(process.argv[2]);
const client = new Client({ name: "proof", version: "1" });
const headers = { Authorization: `Bearer ${process.argv[3]}` };
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));

const call = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert.ok(!result.isError, result.content[0].text);
  return result.content[0].text;
};

const saved = JSON.parse(await call("memory_save", { text: "Bitcoin closed at 45,000" }));
const found = JSON.parse(await call("memory_query", { query: "where did bitcoin close" }));
assert.equal(found.hits[0].id, saved.id);

const long = "line of a log\n".repeat(5000);
const step = JSON.parse(await call("step_record", { tool: "bash", result: long }));
const part = JSON.parse(await call("blob_read", { name: step.step, offset: 14, limit: 13 }));
assert.deepEqual([part.text, part.size], ["line of a log", long.length]);
const blob = await client.readResource({ uri: `loom://blob/${step.blob}` });
assert.equal(blob.contents[0].text, long);

assert.match(await call("tool_run", { name: "fs:list_dir", arguments: { path: "." } }), /entries/);
const told = [];
await call("tool_run", { name: "system:shell", arguments: { command: "sleep", args: ["1.2"] } }, { onprogress: (p) => told.push(p) });
assert.ok(told.length >= 2 && told.at(-1).progress >= 1 && told[0].total === 30, JSON.stringify(told));

const giveUp = new AbortController();
const began = Date.now();
setTimeout(() => giveUp.abort(), 200);
await assert.rejects(call("tool_run", { name: "system:shell", arguments: { command: "sleep", args: ["20"] } }, { signal: giveUp.signal }));
assert.ok(Date.now() - began < 5000);
await client.close();
await assert.rejects(new Client({ name: "proof", version: "1" }).connect(new StreamableHTTPClientTransport(url)), /401|token/i);
console.log(`typescript: ${client.getServerVersion().name} saves, finds, reads back, runs tools, shows progress, is given up, is refused without a token`);
