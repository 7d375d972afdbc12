import type { DescMessage, JsonObject, JsonValue, MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, createClient } from "@connectrpc/connect";

import { AdminService } from "./gen/loombridge/v1/admin_pb.js";
import { BridgeService } from "./gen/loombridge/v1/bridge_pb.js";
import {
  AgentService,
  type AssembleRequestSchema,
  type AssembleResponse,
  BlobService,
  type Message,
  PromptFormat,
  PromptService,
  type Receipt,
  SessionService,
} from "./gen/loombridge/v1/context_pb.js";
import { type EmitRequestSchema, type EmitResponse, EventService } from "./gen/loombridge/v1/events_pb.js";
import {
  type MemoryHit,
  type MemoryQueryRequestSchema,
  type MemorySaveRequestSchema,
  type MemorySaveResponse,
  MemoryService,
  type Record as MemoryRecord,
} from "./gen/loombridge/v1/memory_pb.js";
import { SharingService } from "./gen/loombridge/v1/sharing_pb.js";
import { ToolErrorCode, type ToolRequestSchema, type ToolResponse, ToolService } from "./gen/loombridge/v1/tools_pb.js";
import { TransferService } from "./gen/loombridge/v1/transfer_pb.js";
import { textOf, valueOf } from "./json.js";
import { type SubscribeOptions, Subscription, type Topics } from "./subscription.js";
import { type ConnectOptions, Wire } from "./transport.js";

/** The fields of a request that a verb does not set itself, and what a single call may be given. */
export type Fields<Request extends DescMessage, Set extends string> = Omit<
  Exclude<MessageInitShape<Request>, { $typeName: string }>,
  Set | "$typeName"
> &
  Pick<CallOptions, "signal" | "timeoutMs">;

/** What `memorySave` takes besides the text. */
export type SaveOptions = Fields<typeof MemorySaveRequestSchema, "text" | "metadataForm"> & {
  /** A JSON object of at most 64 KiB. */
  metadata?: JsonObject;
};

/** What `memoryQuery` takes besides the query. */
export type QueryOptions = Fields<typeof MemoryQueryRequestSchema, "query">;

/** What `tool` takes besides name and arguments. `timeoutMs` bounds the tool: default 30,000, at most 600,000. */
export type ToolOptions = Fields<typeof ToolRequestSchema, "name" | "argumentsForm" | "timeout">;

/** What `emit` takes besides topic and payload. */
export type EmitOptions = Fields<typeof EmitRequestSchema, "topic" | "payloadForm">;

/** What `prompt` takes besides the goal. */
export type PromptOptions<F extends Format> = Fields<typeof AssembleRequestSchema, "goal" | "format"> & {
  /** Whose request to make; default `neutral`. */
  format?: F;
};

/** A record that answers a query. */
export interface Hit {
  /** From 0 to 1: how sure the search is that the record answers. */
  readonly score: number;
  /** Its text; of a long one, with `maxTokens`, the passages that match, with "…" between them. */
  readonly text: string;
  /** The JSON object that it was saved with, or an empty one. */
  readonly metadata: JsonObject;
  /** The record as the server sent it. */
  readonly record: MemoryRecord;
  /** The hit as the server sent it. */
  readonly hit: MemoryHit;
}

/** What came of a call of a tool. */
export interface ToolResult {
  /** Whether the tool did its work. */
  readonly success: boolean;
  /** Its result: JSON or bytes; null if it failed. */
  readonly output: JsonValue | Uint8Array;
  /** What went wrong, for people and models; empty if nothing did. */
  readonly errorMessage: string;
  /** What went wrong, for programs; `UNSPECIFIED` if nothing did. */
  readonly errorCode: keyof typeof ToolErrorCode;
  /** The text for the model. */
  readonly observation: string;
  /** All that the server said. */
  readonly response: ToolResponse;
}

/** What `prompt` makes, by format: the part of the provider's request that the bridge writes. */
export interface PromptRequests {
  /** Messages of no provider. */
  neutral: { messages: Message[]; tools: JsonObject[] };
  /** For Anthropic's Messages API, with cache marks. */
  anthropic: { system?: JsonValue; messages: JsonObject[]; tools?: JsonObject[] };
  /** For OpenAI's Chat Completions. */
  "openai-chat": { messages: JsonObject[]; tools?: JsonObject[] };
  /** For OpenAI's Responses API. */
  "openai-responses": { instructions?: string; input: JsonObject[]; tools?: JsonObject[] };
  /** For Gemini's generateContent. */
  gemini: { systemInstruction?: JsonObject; contents: JsonObject[]; tools?: JsonObject[] };
}

/** A shape of prompts. */
export type Format = keyof PromptRequests;

/** A prompt within its budget. */
export interface Prompt<F extends Format> {
  /** Add the model to it, and send it. */
  readonly request: PromptRequests[F];
  /** Tokens of the whole prompt. */
  readonly tokens: number;
  /** What stands in it and why; undefined if the server sent none. */
  readonly receipt: Receipt | undefined;
  /** All that the server said. */
  readonly response: AssembleResponse;
}

const FORMATS: Record<Format, PromptFormat> = {
  neutral: PromptFormat.NEUTRAL,
  anthropic: PromptFormat.ANTHROPIC,
  "openai-chat": PromptFormat.OPENAI_CHAT,
  "openai-responses": PromptFormat.OPENAI_RESPONSES,
  gemini: PromptFormat.GEMINI,
};

/** How much longer than its tool a call waits, so that the tool's own answer arrives. */
const TOOL_GRACE_MS = 10_000;

/**
 * A client: the four verbs, prompts and events pleasantly, and all services typed. Requests leave
 * out `agentId` and `sessionId`, which `connect` was given. JSON in answers of the services comes
 * as text in the `…Json` fields, which `valueOf` reads. Calls that only read, or have a `requestId`,
 * are repeated for three seconds if no server answers. Safe for any number of calls at once.
 */
export class Loom implements AsyncDisposable {
  /** Save, query, tools, events, and the stream of an attached agent. */
  readonly bridge: Client<typeof BridgeService>;
  /** Records of long-term memory. */
  readonly memory: Client<typeof MemoryService>;
  /** Messages, steps and settings of sessions. */
  readonly sessions: Client<typeof SessionService>;
  /** Prompts, and what they cost. */
  readonly prompts: Client<typeof PromptService>;
  /** Large results. */
  readonly blobs: Client<typeof BlobService>;
  /** Children of agents. */
  readonly agents: Client<typeof AgentService>;
  /** Subscriptions and direct messages. */
  readonly events: Client<typeof EventService>;
  /** What tools there are, approvals, audit. */
  readonly tools: Client<typeof ToolService>;
  /** Spaces and grants. */
  readonly sharing: Client<typeof SharingService>;
  /** For who runs the server. */
  readonly admin: Client<typeof AdminService>;
  /** Export and import. */
  readonly transfer: Client<typeof TransferService>;

  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
    this.bridge = createClient(BridgeService, wire);
    this.memory = createClient(MemoryService, wire);
    this.sessions = createClient(SessionService, wire);
    this.prompts = createClient(PromptService, wire);
    this.blobs = createClient(BlobService, wire);
    this.agents = createClient(AgentService, wire);
    this.events = createClient(EventService, wire);
    this.tools = createClient(ToolService, wire);
    this.sharing = createClient(SharingService, wire);
    this.admin = createClient(AdminService, wire);
    this.transfer = createClient(TransferService, wire);
  }

  /** Saves a record, durable when the call returns; the next query finds it. */
  async memorySave(text: string, options: SaveOptions = {}): Promise<MemorySaveResponse> {
    const { metadata, signal, timeoutMs, ...fields } = options;
    const metadataForm =
      metadata && ({ case: "metadataJson", value: textOf("metadata", metadata) } as const);
    const request = { ...fields, text, ...(metadataForm && { metadataForm }) };
    return this.bridge.memorySave(request, call(signal, timeoutMs));
  }

  /** Finds records, best first. */
  async memoryQuery(query: string, options: QueryOptions = {}): Promise<Hit[]> {
    const { signal, timeoutMs, ...fields } = options;
    const request = { ...fields, query };
    const { hits } = await this.bridge.memoryQuery(request, call(signal, timeoutMs));
    return hits.flatMap((hit) => {
      const { record, passages, score } = hit;
      const text = passages.length ? passages.map((passage) => passage.text).join("\n…\n") : record?.text;
      return record
        ? [{ score, text: text ?? "", metadata: (valueOf(record.metadataForm) ?? {}) as JsonObject, record, hit }]
        : [];
    });
  }

  /**
   * Runs a tool, and records the call as a step of the session. A tool that fails is a result, no
   * error. Give a model's own id as `callId`: then its mistakes are results that it reads, too.
   */
  async tool(name: string, args: object = {}, options: ToolOptions = {}): Promise<ToolResult> {
    const { signal, timeoutMs, ...fields } = options;
    const request = {
      ...fields,
      name,
      argumentsForm: { case: "argumentsJson", value: textOf("args", args) } as const,
      ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
    };
    const span = timeoutMs === undefined ? undefined : timeoutMs + TOOL_GRACE_MS;
    const response = await this.bridge.tool(request, call(signal, span));
    const { success, outputForm, errorMessage, errorCode, observation } = response;
    const output = outputForm.case === "outputBytes" ? outputForm.value.data : (valueOf(outputForm) ?? null);
    const named = (ToolErrorCode[errorCode] ?? "FAILED") as keyof typeof ToolErrorCode;
    return { success, output, errorMessage, errorCode: named, observation, response };
  }

  /** Publishes an event, durable unless `delivery` says otherwise. The payload is JSON or bytes. */
  async emit(topic: string, payload: unknown = null, options: EmitOptions = {}): Promise<EmitResponse> {
    const { signal, timeoutMs, ...fields } = options;
    const payloadForm =
      payload instanceof Uint8Array
        ? ({ case: "payloadBytes", value: payload } as const)
        : ({ case: "payloadJson", value: textOf("payload", payload) } as const);
    return this.bridge.emit({ ...fields, topic, payloadForm }, call(signal, timeoutMs));
  }

  /** Listens to topics; the call begins with the first event that is waited for, or with `ready()`. */
  subscribe(topics: Topics, options: SubscribeOptions = {}): Subscription {
    return new Subscription(this.#wire, this.events, topics, options);
  }

  /** Makes the next prompt of the session, within `maxTokens`, in a provider's shape. */
  async prompt<F extends Format = "neutral">(goal: string, options: PromptOptions<F> = {}): Promise<Prompt<F>> {
    const { format = "neutral" as F, signal, timeoutMs, ...fields } = options;
    const request = { ...fields, goal, format: FORMATS[format] };
    const response = await this.prompts.assemble(request, call(signal, timeoutMs));
    const made: unknown =
      format === "neutral"
        ? { messages: response.messages, tools: JSON.parse(response.toolsJson || "[]") }
        : JSON.parse(response.promptJson);
    const { tokens, receipt } = response;
    return { request: made as PromptRequests[F], tokens: Number(tokens?.tokens ?? 0), receipt, response };
  }

  /** Ends all calls and the connection. */
  close(): void {
    this.#wire.close();
  }

  /** Ends all calls and the connection, at the end of `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

/**
 * Returns a client; the first call connects. Write `await using loom = connect({ agentId })`, or
 * call `close()` at the end.
 *
 * @throws TypeError for an invalid address, id or timeout, and for a token that would travel in the clear.
 */
export function connect(options: ConnectOptions = {}): Loom {
  return new Loom(new Wire(options));
}

function call(signal: AbortSignal | undefined, timeoutMs: number | undefined): CallOptions {
  return { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
}
