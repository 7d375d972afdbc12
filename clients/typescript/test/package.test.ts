// What stands beside the client: the page's program, the example, the command.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";

import { BINARY, clean, type Server, serve } from "./server.ts";

const ROOT = join(import.meta.dirname, "..");
const COMMAND = join(ROOT, "bin/loom-bridge.js");

let server: Server;

before(async () => {
  server = await serve();
});

after(() => server[Symbol.asyncDispose]());

function start(args: string[], env: Record<string, string | undefined>): ChildProcess {
  return spawn(process.execPath, args, { cwd: server.folder, env, stdio: ["ignore", "pipe", "pipe"] });
}

/** Runs a program to its end. */
async function run(args: string[], env: Record<string, string | undefined>): Promise<[number | null, string, string]> {
  const child = start(args, env);
  const [out, err] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "close")]);
  return [child.exitCode, out, err];
}

test("the page's program runs as it is printed", async () => {
  const [program] = [...(await readFile(join(ROOT, "README.md"), "utf8")).matchAll(/```ts\n(.*?)```/gs)].map((found) => found[1]!);
  const packages = join(server.folder, "node_modules");
  await mkdir(packages);
  await symlink(ROOT, join(packages, "loom-bridge"));
  await writeFile(join(server.folder, "page.mts"), program!);
  const [code, out, err] = await run(["page.mts"], clean({ LOOM_BRIDGE_ADDR: server.address }));
  assert.equal(code, 0, err);
  assert.match(out, /^\d\.\d\d Bitcoin closed at 45,000 \{ source: 'desk' \}\n/);
  assert.match(out, /\nListed \.: /);
  assert.match(out, /\n1n \{ headline: 'Bitcoin closed' \}\n\d+ \d+\n$/);
});

test("the example keeps notes by the model's calls", async () => {
  const call = (name: string, input: object) => [{ type: "tool_use", id: name, name, input }];
  const turns = [
    call("fs_write_file", { path: "harbour.txt", content: "The harbour is closed until Monday." }),
    call("fs_read_file", { path: "harbour.txt" }),
    [{ type: "text", text: "It says that the harbour is closed until Monday." }],
  ];
  const asked: string[] = [];
  const model = createServer(async (request, response) => {
    asked.push(await text(request));
    response.end(JSON.stringify({ content: turns[asked.length - 1] }));
  });
  await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(model.address() as { port: number }).port}`;
  const [code, out, err] = await run([join(ROOT, "examples/agent.ts")], clean({ LOOM_BRIDGE_ADDR: server.address, ANTHROPIC_BASE_URL: url }));
  model.close();
  assert.deepEqual([code, out], [0, "It says that the harbour is closed until Monday.\n"], err);
  assert.equal(await readFile(join(server.folder, "harbour.txt"), "utf8"), "The harbour is closed until Monday.");
  assert.match(asked[2]!, /"tool_use_id":"fs_read_file".*closed until Monday/, "the model read the result");
});

test("the command becomes the server, and says what is missing", async () => {
  const named = clean({ LOOM_BRIDGE_SERVER: BINARY, HOME: server.folder });
  assert.match((await run([COMMAND, "--version"], named))[1], /^loom-bridge-server /);
  const [code, , said] = await run([COMMAND, "--no-such-flag"], named);
  assert.notEqual(code, 0);
  assert.match(said, /no-such-flag/);
  const [installed, shown] = await run([COMMAND, "mcp", "install", "claude-code", "--print"], named);
  assert.equal(installed, 0);
  assert.match(shown, /mcp/);

  const places = ["--addr", "127.0.0.1:0", "--http-addr", "off", "--embedder", "off", "--data-dir", join(server.folder, "second")];
  const child = start([COMMAND, ...places], named);
  for await (const line of createInterface({ input: child.stdout! })) {
    if (line.startsWith("listening on ")) {
      child.kill("SIGTERM");
    }
  }
  if (child.exitCode === null && child.signalCode === null) {
    await once(child, "exit");
  }
  assert.equal(child.exitCode, 0, "the server stopped as it does by itself");

  const missing = await run([COMMAND], clean({ PATH: server.folder }));
  assert.deepEqual([missing[0], missing[1]], [127, ""]);
  assert.match(missing[2], /^loom-bridge: there is no loom-bridge-server: npm install @loom-bridge\/[\w-]+, put one on the PATH.*\n$/);
});
