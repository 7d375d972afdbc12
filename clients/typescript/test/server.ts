// The built server, started as users do. SERVER names its binary.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const BINARY = process.env["SERVER"]!;

/** A server with a folder of its own, and the same address when it is started again. */
export class Server implements AsyncDisposable {
  address = "127.0.0.1:0";
  readonly folder: string;
  readonly #flags: string[];
  #child: ChildProcess | undefined;

  constructor(folder: string, flags: string[]) {
    this.folder = folder;
    this.#flags = flags;
  }

  async start(): Promise<void> {
    const places = ["--data-dir", join(this.folder, "store"), "--workspace", this.folder];
    const flags = ["--addr", this.address, "--http-addr", "off", "--log-level", "error", "--embedder", "off", ...places, ...this.#flags];
    const child = (this.#child = spawn(BINARY, flags, { stdio: ["ignore", "pipe", "inherit"], env: clean() }));
    for await (const line of createInterface({ input: child.stdout! })) {
      const found = /^listening on (\S+)/.exec(line);
      if (found) {
        this.address = found[1]!;
        return;
      }
    }
    assert.fail("the server ended before it listened");
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await once(child, "exit");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true });
  }
}

export async function serve(...flags: string[]): Promise<Server> {
  const server = new Server(await mkdtemp(join(tmpdir(), "loom-ts-")), flags);
  await server.start();
  return server;
}

/** The environment without settings of this machine's own server. */
export function clean(more: Record<string, string> = {}): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("LOOM_BRIDGE_"));
  return { ...Object.fromEntries(kept), ...more };
}
