import { readFileSync } from "node:fs";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectionOptions } from "node:tls";

import type { DescMessage, DescMethodStreaming, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, type ContextValues, type StreamResponse, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { CancelledError, fromCall, UnavailableError } from "./errors.js";

/** How to speak TLS, by files in PEM. */
export interface Tls {
  /** The authorities to trust; default: those of Node.js. */
  readonly caFile?: string;
  /** The client's own certificates, for mutual TLS; goes with `keyFile`. */
  readonly certFile?: string;
  /** The private key of these. */
  readonly keyFile?: string;
  /** The name in the server's certificate; default: the address's host. */
  readonly serverName?: string;
}

/** What a client is connected with. */
export interface ConnectOptions {
  /** `host:port` or `unix:/path`; default: the variable LOOM_BRIDGE_ADDR, or 127.0.0.1:50051. */
  readonly address?: string;
  /** A bearer token; default: the variable LOOM_BRIDGE_TOKEN, or none. */
  readonly token?: string;
  /**
   * The agent that calls act for unless a request names another. It travels as metadata, so it
   * consists of printable ASCII; another id goes into the `agentId` of each request.
   */
  readonly agentId?: string;
  /** The session that calls work in, by the same rules; default: the server's `default`. */
  readonly sessionId?: string;
  /**
   * True or files for an encrypted connection. Default: plain, which is refused if a token would
   * travel to another machine; false allows that.
   */
  readonly tls?: boolean | Tls;
  /** How long a call may take that is given no timeout, in milliseconds; default 30,000. Streams have none. */
  readonly timeoutMs?: number;
}

type HeadersInit = ConstructorParameters<typeof Headers>[0];

/** Most bytes of one answer. */
const LARGEST_ANSWER = 64 << 20;
/** Of its 10 MB by default Node.js would break off a stream that sends more than that. */
const MAX_SESSION_MEMORY_MB = 1024;
/** Pauses before a call that changes nothing, or can be told again by its request id, is repeated. */
const RETRY_PAUSES_MS = [100, 200, 400, 800, 1600];
/** A server lets clients ask every five seconds whether it is there. */
const KEEPALIVE = { pingIntervalMs: 30_000, pingTimeoutMs: 10_000 };

/** One connection, and the rules of all calls: who calls, deadlines, repetitions, errors. */
export class Wire implements Transport {
  readonly address: string;
  readonly timeoutMs: number;
  readonly #headers: Record<string, string>;
  readonly #sessions: Http2SessionManager;
  readonly #inner: Transport;
  #closed = false;

  constructor(options: ConnectOptions) {
    this.address = checkAddress(options.address ?? (process.env["LOOM_BRIDGE_ADDR"] || "127.0.0.1:50051"));
    this.timeoutMs = options.timeoutMs ?? 30_000;
    if (!(this.timeoutMs > 0)) {
      throw new TypeError(`timeoutMs must be a positive number, not ${this.timeoutMs}`);
    }
    const token = options.token ?? process.env["LOOM_BRIDGE_TOKEN"];
    if (token && options.tls === undefined && !isLocal(this.address)) {
      throw new TypeError(
        `the token would travel unencrypted to ${this.address}; give tls: true, or tls: false if something else protects the connection`,
      );
    }
    // JSON in answers comes as text: exact, and in one form whatever its size.
    this.#headers = { "loom-json": "text" };
    for (const [name, value] of [
      ["loom-agent-id", named("agentId", options.agentId)],
      // By this a balancer sends the calls of one agent to one server, whatever client makes them.
      ["loom-agent", options.agentId && quoted(options.agentId)],
      ["loom-session-id", named("sessionId", options.sessionId)],
      ["authorization", token && `Bearer ${named("token", token)}`],
    ] as const) {
      if (value) {
        this.#headers[name] = value;
      }
    }
    const path = this.address.startsWith("unix:") ? this.address.slice("unix:".length) : undefined;
    const baseUrl = `${options.tls ? "https" : "http"}://${path === undefined ? this.address : "localhost"}`;
    this.#sessions = new Http2SessionManager(baseUrl, KEEPALIVE, {
      maxSessionMemory: MAX_SESSION_MEMORY_MB,
      ...(path !== undefined && { createConnection: () => net.connect(path) }),
      ...(typeof options.tls === "object" && files(options.tls)),
    });
    this.#inner = createGrpcTransport({ baseUrl, sessionManager: this.#sessions, readMaxBytes: LARGEST_ANSWER });
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: MessageInitShape<I>,
    contextValues?: ContextValues,
  ): Promise<UnaryResponse<I, O>> {
    checkTexts(input, method.input.name);
    const span = timeoutMs ?? this.timeoutMs;
    const ends = span > 0 ? performance.now() + span : Infinity;
    const pauses = repeatable(method, input) ? [...RETRY_PAUSES_MS] : [];
    for (;;) {
      this.#checkOpen();
      try {
        const left = ends === Infinity ? 0 : Math.max(1, Math.ceil(ends - performance.now()));
        return await this.#inner.unary(method, signal, left, this.#about(header), input, contextValues);
      } catch (failed) {
        const error = this.error(failed, signal);
        const pause = jittered(pauses.shift() ?? Infinity);
        if (!(error instanceof UnavailableError) || performance.now() + pause >= ends || pause === Infinity) {
          throw error;
        }
        await this.pause(pause, signal);
      }
    }
  }

  async stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: AsyncIterable<MessageInitShape<I>>,
    contextValues?: ContextValues,
  ): Promise<StreamResponse<I, O>> {
    this.#checkOpen();
    const own: unknown[] = [];
    const sent = checked(input, method.input.name, own);
    const fail = (failed: unknown): unknown => (own.length ? own[0] : this.error(failed, signal));
    try {
      const answer = await this.#inner.stream(method, signal, timeoutMs, this.#about(header), sent, contextValues);
      return { ...answer, message: typed(answer.message, fail) };
    } catch (failed) {
      throw fail(failed);
    }
  }

  /** Ends all open calls, and refuses others. */
  close(): void {
    this.#closed = true;
    this.#sessions.abort();
  }

  /** Waits, unless the signal or the client's end comes first. */
  async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      await sleep(ms, undefined, signal && { signal });
    } catch (aborted) {
      throw this.error(aborted, signal);
    }
  }

  /** Returns what a failed call ends with. */
  error(failed: unknown, signal: AbortSignal | undefined): Error {
    return this.#closed ? closedError() : fromCall(failed, this.address, signal?.aborted === true);
  }

  #about(header: HeadersInit | undefined): Headers {
    const all = new Headers(this.#headers);
    new Headers(header).forEach((value, name) => all.set(name, value));
    return all;
  }

  #checkOpen(): void {
    if (this.#closed) {
      throw closedError();
    }
  }
}

async function* typed<T>(messages: AsyncIterable<T>, fail: (failed: unknown) => unknown): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (failed) {
    throw fail(failed);
  }
}

/** Passes on what a caller sends, and notes the caller's own error, which the call ends with. */
async function* checked<T>(messages: AsyncIterable<T>, name: string, own: unknown[]): AsyncGenerator<T> {
  try {
    for await (const message of messages) {
      checkTexts(message, name);
      yield message;
    }
  } catch (failed) {
    own.push(failed);
    throw failed;
  }
}

/** Refuses half of a surrogate pair, which has no form in UTF-8 and would arrive as another character. */
function checkTexts(value: unknown, path: string): void {
  if (typeof value === "string") {
    if (!value.isWellFormed()) {
      throw new TypeError(`${path} has half of a surrogate pair`);
    }
  } else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    for (const [name, item] of Object.entries(value)) {
      checkTexts(item, `${path}.${name}`);
    }
  }
}

/** Spreads what many clients do at the same moment. */
export function jittered(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}

function repeatable(method: DescMethodUnary, input: object): boolean {
  return (
    method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ||
    ("requestId" in input && Boolean(input.requestId))
  );
}

function closedError(): CancelledError {
  return new CancelledError("the client is closed", { code: Code.Canceled });
}

function checkAddress(address: string): string {
  const port = /^(?:\[[0-9a-fA-F:.]+\]|[^\s/:@?#]+):(\d{1,5})$/.exec(address)?.[1];
  if (!/^unix:./.test(address) && !(Number(port) <= 65_535)) {
    throw new TypeError(`address must be host:port or unix:/path, not ${JSON.stringify(address)}`);
  }
  return address;
}

function isLocal(address: string): boolean {
  return /^(unix:|localhost:|\[::1\]:|127(\.\d{1,3}){3}:)/.test(address);
}

function named(what: string, value: string | undefined): string | undefined {
  if (value !== undefined && !/^[!-~]([ -~]*[!-~])?$/.test(value)) {
    throw new TypeError(`${what} must be printable ASCII without blanks around it, since it travels as metadata`);
  }
  return value;
}

/** Returns an id as clients in Python write it, too. */
function quoted(id: string): string {
  const hex = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(id).replaceAll("%2F", "/").replace(/[!'()*]/g, hex);
}

function files(tls: Tls): ConnectionOptions {
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    throw new TypeError("certFile and keyFile go together");
  }
  return {
    ...(tls.caFile !== undefined && { ca: readFileSync(tls.caFile) }),
    ...(tls.certFile !== undefined && { cert: readFileSync(tls.certFile) }),
    ...(tls.keyFile !== undefined && { key: readFileSync(tls.keyFile) }),
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
  };
}
