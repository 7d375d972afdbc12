// A client in TypeScript, generated from the protos by an ordinary generator,
// talks to the real server. SERVER names its binary.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { BridgeService } from "./gen/loombridge/v1/bridge_pb.js";

let folder: string;
let server: ChildProcess;
let transport: Transport;

// listening resolves to the address that the server prints once it serves.
async function listening(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const found = /^listening on (\S+)/.exec(line);
    if (found) {
      return found[1]!;
    }
  }
  throw new Error("the server ended before it listened");
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "loombridge-typescript-"));
  server = spawn(
    process.env["SERVER"]!,
    ["--addr", "127.0.0.1:0", "--data-dir", join(folder, "store"), "--workspace", folder],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  transport = createGrpcTransport({ baseUrl: `http://${await listening(server)}` });
});

after(async () => {
  if (server.exitCode === null) {
    server.kill("SIGTERM");
    await once(server, "exit");
  }
  await rm(folder, { recursive: true });
});

test("a saved record is found by its words", async () => {
  const bridge = createClient(BridgeService, transport);
  const text = "The tide at Dover turns at six";

  const saved = await bridge.memorySave({
    agentId: "typescript",
    text,
    metadataForm: { case: "metadata", value: { source: "harbour" } },
    tags: ["tide"],
  });
  const found = await bridge.memoryQuery({ agentId: "typescript", query: "when does the tide turn?" });

  assert.equal(found.hits.length, 1);
  assert.equal(found.hits[0]!.record!.id, saved.id);
  assert.equal(found.hits[0]!.record!.text, text);
});

test("bad input is refused with a status code", async () => {
  const bridge = createClient(BridgeService, transport);

  await assert.rejects(bridge.memorySave({ agentId: "typescript", text: "" }), (error) => {
    assert.ok(error instanceof ConnectError);
    assert.equal(error.code, Code.InvalidArgument);
    return true;
  });
});
