import type { JsonValue, MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate, timestampFromDate, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code } from "@connectrpc/connect";

import { DeadlineError, InternalError, LoomBridgeError, UnavailableError } from "./errors.js";
import {
  type Event as WireEvent,
  type EventService,
  QualityOfService,
  type SubscribeResponse,
  type SubscriptionReady,
  type TopicPositionSchema,
} from "./gen/loombridge/v1/events_pb.js";
import { valueOf } from "./json.js";
import { jittered, type Wire } from "./transport.js";

/** One thing that happened. */
export interface Event {
  /** Names the event. */
  readonly id: string;
  /** Where it was emitted. */
  readonly topic: string;
  /** Its place in the topic, from 1 without gaps; 0 if it is volatile. */
  readonly sequence: bigint;
  /** The agent that emitted it. */
  readonly source: string;
  /** The emitter's session, or empty. */
  readonly sessionId: string;
  /** When the server took it. */
  readonly time: Date;
  /** What it says: JSON, or bytes if bytes were emitted. */
  readonly payload: JsonValue | Uint8Array;
  /** The emitter's own pairs. */
  readonly headers: Readonly<Record<string, string>>;
  /** What sort of event it is, in the emitter's words; may be empty. */
  readonly type: string;
  /** The emitter's own labels. */
  readonly tags: readonly string[];
}

/**
 * What to listen to: a topic or a pattern (`*` is one word, `**` at the end any), several, or
 * topics with the sequence to begin behind: 0 for all there is, undefined for what comes from now on.
 */
export type Topics = string | readonly string[] | Readonly<Record<string, bigint | number | undefined>>;

/** Which events to hear, and how. */
export interface SubscribeOptions {
  /** Begin with the durable events after this time, in topics without a sequence. */
  readonly since?: Date;
  /** Only events with one of these types. */
  readonly eventTypes?: readonly string[];
  /** Only events with all of these headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Only events of this session. */
  readonly sessionId?: string;
  /** What happens if this reader falls behind; default `batched`, which skips nothing durable. */
  readonly qos?: "realtime" | "batched" | "background";
  /** Who listens; default: the client's agent. */
  readonly agentId?: string;
  /** Ends the subscription with a `CancelledError`. */
  readonly signal?: AbortSignal;
}

const LONGEST_PAUSE_MS = 3_000;
/** How long a subscription that once stood looks for a server. */
const RECONNECT_FOR_MS = 300_000;
/** Topics of patterns whose last sequence is kept, the latest ones. */
const TOPICS_REMEMBERED = 50_000;
/** Time without an event from the past after which a pattern counts as read up to where it was before. */
const SETTLE_MS = 5_000;
/** How much older than the newest an event may be and still count as new. */
const LAG_MS = 1_000;

/**
 * The events of some topics, in order per topic: `for await (const event of subscription)`. Leaving
 * the loop ends it. One reader at a time.
 *
 * When the connection breaks, the server stops or this reader was too slow, it resumes behind the
 * last event, for up to five minutes: durable events are neither lost nor repeated; volatile ones
 * that are emitted meanwhile are lost.
 */
export class Subscription implements AsyncIterableIterator<Event>, AsyncDisposable {
  /** By topic or pattern, the sequence of the last event; undefined: not known yet, or a pattern. */
  readonly positions: Map<string, bigint | undefined>;
  /** How many volatile events the server dropped because this reader was behind. */
  dropped = 0n;

  readonly #wire: Wire;
  readonly #events: Client<typeof EventService>;
  readonly #options: SubscribeOptions;
  readonly #end = new AbortController();
  readonly #signal: AbortSignal;
  #call: AsyncIterator<SubscribeResponse> | undefined;
  #opening: Promise<AsyncIterator<SubscribeResponse>> | undefined;
  #stood = false;

  #start: Timestamp | undefined;
  #readMs = 0;
  #latestMs = 0;
  #markMs = 0;
  #markedAt = 0;
  #lagged = false;
  readonly #seen = new Map<string, bigint>();

  /** @internal */
  constructor(wire: Wire, events: Client<typeof EventService>, topics: Topics, options: SubscribeOptions) {
    this.#wire = wire;
    this.#events = events;
    this.#options = options;
    this.#signal = options.signal ? AbortSignal.any([this.#end.signal, options.signal]) : this.#end.signal;
    this.#start = options.since && timestampFromDate(options.since);
    const named = typeof topics === "string" ? [topics] : topics;
    const pairs = Array.isArray(named)
      ? (named as readonly string[]).map((topic) => [topic, undefined] as const)
      : Object.entries(named as Readonly<Record<string, bigint | number | undefined>>);
    this.positions = new Map(pairs.map(([topic, after]) => [topic, after === undefined ? undefined : BigInt(after)]));
  }

  /** Returns when the subscription stands: all that is emitted from then on arrives. */
  async ready(): Promise<this> {
    await this.#open();
    return this;
  }

  /** Waits for the next event, as long as it takes. */
  async next(): Promise<IteratorResult<Event, undefined>> {
    while (!this.#end.signal.aborted) {
      try {
        const { done, value } = await (await this.#open()).next();
        if (done) {
          break;
        }
        this.dropped += value.droppedVolatile;
        if (value.item.case === "event" && this.#take(value.item.value)) {
          return { done: false, value: shown(value.item.value) };
        }
      } catch (failed) {
        if (this.#end.signal.aborted) {
          break;
        }
        this.#call = undefined;
        if (!this.#stood || !resumes(failed)) {
          throw failed;
        }
      }
    }
    return { done: true, value: undefined };
  }

  /** Ends the subscription. */
  async return(): Promise<IteratorResult<Event, undefined>> {
    this.#end.abort();
    return { done: true, value: undefined };
  }

  /** Returns the subscription itself. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Ends the subscription. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #open(): Promise<AsyncIterator<SubscribeResponse>> {
    if (this.#call) {
      return this.#call;
    }
    this.#opening ??= this.#connect().finally(() => (this.#opening = undefined));
    return (this.#call = await this.#opening);
  }

  async #connect(): Promise<AsyncIterator<SubscribeResponse>> {
    const gives = performance.now() + RECONNECT_FOR_MS;
    for (let pause = 100; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      if (this.#stood) {
        // A server that accepts and breaks off at once must not be hammered.
        await this.#wire.pause(jittered(pause), this.#signal);
      }
      try {
        return await this.#attempt();
      } catch (failed) {
        if (!this.#stood || !resumes(failed) || performance.now() > gives) {
          throw failed;
        }
      }
    }
  }

  async #attempt(): Promise<AsyncIterator<SubscribeResponse>> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.#wire.timeoutMs);
    const signal = AbortSignal.any([this.#signal, late.signal]);
    try {
      const request = {
        agentId: this.#options.agentId ?? "",
        topics: [...this.positions.keys()].map((topic) => this.#place(topic)),
      };
      const call = this.#events.subscribe(request, { signal, timeoutMs: 0 })[Symbol.asyncIterator]();
      const first = await call.next();
      if (first.done || first.value.item.case !== "ready") {
        late.abort();
        throw new InternalError("the server opened a subscription without `ready`", { code: Code.Internal });
      }
      this.#stand(first.value.item.value);
      return call;
    } catch (failed) {
      if (late.signal.aborted && !this.#signal.aborted && !(failed instanceof InternalError)) {
        const message = `the subscription did not stand within ${this.#wire.timeoutMs} ms`;
        throw new DeadlineError(message, { code: Code.DeadlineExceeded, cause: failed });
      }
      throw failed;
    } finally {
      clearTimeout(timer);
    }
  }

  #place(topic: string): MessageInitShape<typeof TopicPositionSchema> {
    const { eventTypes, headers, sessionId, qos, since } = this.#options;
    const after = this.positions.get(topic);
    const begin = topic.includes("*") ? this.#resumeTime() : since && timestampFromDate(since);
    return {
      topic,
      ...(after !== undefined ? { afterSequence: after } : begin && { since: begin }),
      eventTypes: [...(eventTypes ?? [])],
      headers: { ...headers },
      sessionId: sessionId ?? "",
      qualityOfService: qos === undefined ? 0 : QualityOfService[qos.toUpperCase() as Uppercase<typeof qos>],
    };
  }

  /** Notes where each topic begins, so that a break from here on loses nothing. */
  #stand(ready: SubscriptionReady): void {
    this.#stood = true;
    this.#start ??= ready.serverTime;
    for (const { topic, afterSequence } of ready.positions) {
      if (this.positions.has(topic)) {
        this.positions.set(topic, this.positions.get(topic) ?? afterSequence);
      }
    }
  }

  /** Notes an event; false if it was seen before. */
  #take({ topic, sequence, createTime }: WireEvent): boolean {
    if (sequence === 0n) {
      return true;
    }
    const exact = this.positions.has(topic);
    if (sequence <= ((exact ? this.positions.get(topic) : this.#seen.get(topic)) ?? 0n)) {
      return false;
    }
    if (exact) {
      this.positions.set(topic, sequence);
      return true;
    }
    this.#seen.delete(topic);
    this.#seen.set(topic, sequence);
    if (this.#seen.size > TOPICS_REMEMBERED) {
      this.#seen.delete(this.#seen.keys().next().value!);
    }
    this.#settle(createTime ? timestampMs(createTime) : 0);
    return true;
  }

  /**
   * Notes up to which time all topics of a pattern were read. Order holds within a topic, not
   * between topics, but topics that are behind are read in turns.
   */
  #settle(timeMs: number): void {
    const now = performance.now();
    if (!this.#latestMs) {
      [this.#markMs, this.#markedAt, this.#latestMs] = [timeMs - LAG_MS, now, timeMs];
    }
    if (now - this.#markedAt >= SETTLE_MS) {
      if (!this.#lagged) {
        this.#readMs = this.#markMs;
      }
      [this.#markMs, this.#markedAt, this.#lagged] = [this.#latestMs - LAG_MS, now, false];
    }
    this.#lagged ||= timeMs < this.#latestMs - LAG_MS;
    this.#latestMs = Math.max(this.#latestMs, timeMs);
  }

  #resumeTime(): Timestamp | undefined {
    const later = this.#start && this.#readMs > timestampMs(this.#start);
    return later ? timestampFromMs(this.#readMs) : this.#start;
  }
}

function resumes(failed: unknown): boolean {
  return failed instanceof UnavailableError || (failed instanceof LoomBridgeError && failed.reason === "SLOW_CONSUMER");
}

function shown(m: WireEvent): Event {
  return {
    id: m.id,
    topic: m.topic,
    sequence: m.sequence,
    source: m.source,
    sessionId: m.sessionId,
    time: m.createTime ? timestampDate(m.createTime) : new Date(0),
    payload: valueOf(m.payloadForm) ?? null,
    headers: m.headers,
    type: m.type,
    tags: m.tags,
  };
}
