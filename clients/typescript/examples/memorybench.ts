/**
 * A provider for MemoryBench (github.com/supermemoryai/memorybench), beside a server. In its tree:
 *
 *     bun add loom-bridge          # and this file as src/providers/loom-bridge/index.ts
 *     src/types/provider.ts        # | "loom-bridge" in ProviderName
 *     src/providers/index.ts       # "loom-bridge": LoomBridgeProvider in providers
 *     src/utils/config.ts          # case "loom-bridge": return { apiKey: "", baseUrl: process.env.LOOM_BRIDGE_ADDR }
 *     OPENAI_API_KEY=… bun run src/index.ts run -p loom-bridge -b locomo -j gpt-4o
 *
 * Each container of the benchmark is a person, whose memory has a record for each message.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { connect, type Loom } from "loom-bridge";
import { QueryMode } from "loom-bridge/v1";

/** A conversation of the benchmark. */
interface Session {
  sessionId: string;
  messages: { role: "user" | "assistant"; content: string; timestamp?: string; speaker?: string }[];
  metadata?: Record<string, unknown>;
}

/** What of a conversation was saved. */
interface Ingested {
  documentIds: string[];
  taskIds?: string[];
}

/** What the benchmark shows while it waits. */
type Progress = (progress: { completedIds: string[]; failedIds: string[]; total: number }) => void;

/** How many records one call saves. */
const AT_ONCE = 200;

export class LoomBridgeProvider {
  readonly name = "loom-bridge";
  readonly concurrency = { default: 8 };
  #loom: Loom | undefined;

  /** Connects to `baseUrl`, such as `127.0.0.1:50051`; `apiKey` is a token of the server, if it asks for one. */
  async initialize({ apiKey, baseUrl }: { apiKey: string; baseUrl?: string }): Promise<void> {
    this.#loom = connect({
      agentId: "memorybench",
      ...(baseUrl ? { address: baseUrl } : {}),
      ...(apiKey ? { token: apiKey } : {}),
    });
  }

  /** Saves each message of conversations, with the time and the one who said it. */
  async ingest(sessions: Session[], { containerTag }: { containerTag: string }): Promise<Ingested> {
    const documentIds: string[] = [];
    for (const { sessionId, messages, metadata } of sessions) {
      for (let at = 0; at < messages.length; at += AT_ONCE) {
        const records = messages.slice(at, at + AT_ONCE).flatMap(({ role, content, timestamp, speaker }) => {
          const date = String(timestamp ?? metadata?.["formattedDate"] ?? metadata?.["date"] ?? "");
          const parsed = new Date(String(timestamp ?? metadata?.["date"] ?? ""));
          const about: JsonObject = { session: sessionId, date };
          const eventTime = Number.isNaN(parsed.getTime()) ? {} : { eventTime: timestampFromDate(parsed) };
          const record = {
            text: `${speaker ?? role}: ${content}`,
            kind: "message",
            sessionId,
            metadataForm: { case: "metadataJson" as const, value: JSON.stringify(about) },
            ...eventTime,
          };
          return content.trim() ? [record] : [];
        });
        if (records.length > 0) {
          const requestId = crypto.randomUUID(); // one of a conversation would save nothing after `clear`
          const { saved } = await this.#client.memory.batchSave({ userId: containerTag, requestId, records });
          documentIds.push(...saved.map(({ id }) => id));
        }
      }
    }
    return { documentIds };
  }

  /** What was saved is found at once. */
  async awaitIndexing({ documentIds }: Ingested, _containerTag: string, onProgress?: Progress): Promise<void> {
    onProgress?.({ completedIds: documentIds, failedIds: [], total: documentIds.length });
  }

  /** Finds what answers a question, best first. The benchmark's threshold is of another scale of scores, and not used. */
  async search(query: string, { containerTag, limit = 10 }: { containerTag: string; limit?: number }): Promise<unknown[]> {
    const hits = await this.#client.memoryQuery(query, { userId: containerTag, mode: QueryMode.HYBRID, limit });
    return hits.map(({ text, score, metadata }) => ({ text, date: metadata["date"], session: metadata["session"], score }));
  }

  /** Deletes the memory of a container. */
  async clear(containerTag: string): Promise<void> {
    await this.#client.memory.deleteRecords({ userId: containerTag, filter: "version >= 1" });
  }

  get #client(): Loom {
    if (!this.#loom) {
      throw new Error("initialize comes first");
    }
    return this.#loom;
  }
}
