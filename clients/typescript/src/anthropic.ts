/** Claude's memory tool: `betaMemoryTool(memoryFiles(loom))` of `@anthropic-ai/sdk/helpers/beta/memory`. */
import { posix } from "node:path";

import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";

import type { Loom } from "./client.js";
import { AlreadyExistsError, ConflictError, NotFoundError } from "./errors.js";
import type { Record as MemoryRecord } from "./gen/loombridge/v1/memory_pb.js";
import { textOf, valueOf } from "./json.js";

const KIND = "memory_file";
const ROOT = "/memories";
/** The text of the record of an empty file. */
const EMPTY = "-";
const PATH_BYTES = 240;
const FILE_BYTES = 256 << 10;
const MAX_LINES = 999_999;
/** Times that an edit begins again because others change the file meanwhile. */
const ATTEMPTS = 10;

/** What `memoryFiles` takes besides the client. */
export interface MemoryFilesOptions {
  /** Keep the files in that person's memory, which all agents share; default: in the agent's own. */
  readonly userId?: string;
}

/**
 * Returns the handlers of Claude's memory tool; each file is a record of long-term memory, found by
 * `memoryQuery`, too. It is the same file for `loombridge.anthropic` in Python. A file has at most
 * 256 KiB, a path 240 bytes. Every change is one commit; who edits one at the same time as others
 * loses nothing. Folders are there as long as they hold files.
 */
export function memoryFiles(loom: Loom, options: MemoryFilesOptions = {}): MemoryToolHandlers {
  return new Files(loom, options.userId ?? "");
}

class Files implements MemoryToolHandlers {
  readonly #loom: Loom;
  readonly #userId: string;

  constructor(loom: Loom, userId: string) {
    this.#loom = loom;
    this.#userId = userId;
  }

  view: MemoryToolHandlers["view"] = async (command) => {
    const path = placeOf(command.path);
    const file = await this.#file(path);
    if (file === undefined) {
      const below = await this.#below(path);
      if (below.length === 0 && path !== ROOT) {
        throw missing(command.path);
      }
      return listing(command.path, path, below);
    }
    const lines = contentOf(file).split("\n");
    if (lines.length > MAX_LINES) {
      throw new Error(`File ${command.path} has too many lines (${lines.length}). Maximum is 999,999 lines.`);
    }
    const [from, to] = command.view_range ?? [1, -1];
    const shown = numbered(lines, Math.max(1, from ?? 1), to === undefined || to === -1 ? lines.length : to);
    return `Here's the content of ${command.path} with line numbers:\n${shown}`;
  };

  create: MemoryToolHandlers["create"] = async (command) => {
    const path = placeOf(command.path);
    const exists = new Error(`File ${command.path} already exists`);
    if (path === ROOT || (await this.#below(path, 1)).length > 0) {
      throw exists;
    }
    await this.#checkFolders(path);
    await this.#add([draft(path, command.file_text)], exists);
    return `File created successfully at: ${command.path}`;
  };

  str_replace: MemoryToolHandlers["str_replace"] = ({ path, old_str, new_str }) =>
    this.#edit(path, (content) => {
      const at = content.indexOf(old_str);
      if (at < 0) {
        throw new Error(`No replacement was performed, old_str \`${old_str}\` did not appear verbatim in ${path}.`);
      }
      const lineAt = (place: number): number => content.slice(0, place).split("\n").length;
      const places = [];
      for (let place = at; place >= 0; place = content.indexOf(old_str, place + 1)) {
        places.push(lineAt(place));
      }
      if (places.length > 1) {
        const where = places.join(", ");
        throw new Error(
          `No replacement was performed. Multiple occurrences of old_str \`${old_str}\` in lines: ${where}. Please ensure it is unique`,
        );
      }
      const changed = content.slice(0, at) + new_str + content.slice(at + old_str.length);
      const line = lineAt(at);
      const shown = numbered(changed.split("\n"), Math.max(1, line - 2), line + 2);
      return [changed, `The memory file has been edited. Here is the snippet showing the change (with line numbers):\n${shown}`];
    });

  insert: MemoryToolHandlers["insert"] = ({ path, insert_line, insert_text }) =>
    this.#edit(path, (content) => {
      const lines = content.split("\n");
      if (insert_line < 0 || insert_line > lines.length) {
        throw new Error(
          `Invalid \`insert_line\` parameter: ${insert_line}. It should be within the range of lines of the file: [0, ${lines.length}]`,
        );
      }
      lines.splice(insert_line, 0, insert_text.replace(/\n$/, ""));
      return [lines.join("\n"), `The file ${path} has been edited.`];
    });

  delete: MemoryToolHandlers["delete"] = async (command) => {
    const path = placeOf(command.path);
    if (path === ROOT) {
      throw new Error(`Cannot delete the ${ROOT} directory itself`);
    }
    const filter = `${named(path)} OR ${below(path)}`;
    const { deleted } = await this.#loom.memory.deleteRecords({ userId: this.#userId, filter });
    if (deleted === 0n) {
      throw new Error(`The path ${command.path} does not exist`);
    }
    return `Successfully deleted ${command.path}`;
  };

  rename: MemoryToolHandlers["rename"] = async (command) => {
    const [from, to] = [placeOf(command.old_path), placeOf(command.new_path)];
    if (from === ROOT) {
      throw new Error(`Cannot rename the ${ROOT} directory itself`);
    }
    const exists = new Error(`The destination ${command.new_path} already exists`);
    if (to === ROOT || (await this.#file(to)) || (await this.#below(to, 1)).length > 0) {
      throw exists;
    }
    const file = await this.#file(from);
    const moved = file ? [file] : await this.#below(from);
    if (moved.length === 0) {
      throw new Error(`The path ${command.old_path} does not exist`);
    }
    await this.#checkFolders(to);
    // One commit replaces the records by others with the new names; nobody sees the old ones from then on.
    const drafts = moved.map((each) => draft(to + pathOf(each).slice(from.length), contentOf(each), each.id));
    await this.#add(drafts, exists);
    await this.#forget(moved);
    return `Successfully renamed ${command.old_path} to ${command.new_path}`;
  };

  async #edit(asked: string, edit: (content: string) => [changed: string, answer: string]): Promise<string> {
    const path = placeOf(asked);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const file = await this.#file(path);
      if (file === undefined) {
        const folder = path === ROOT || (await this.#below(path, 1)).length > 0;
        throw folder ? new Error(`The path ${asked} is not a file.`) : missing(asked);
      }
      const [changed, answer] = edit(contentOf(file));
      const { text, metadataForm } = draft(path, changed);
      try {
        await this.#loom.memory.updateRecord({
          userId: this.#userId,
          name: { case: "id", value: file.id },
          record: { text, metadataForm },
          updateMask: { paths: ["text", "metadata"] },
          expectedVersion: file.version,
        });
        return answer;
      } catch (error) {
        if (!(error instanceof ConflictError || error instanceof NotFoundError)) {
          throw error;
        }
      }
    }
    throw new Error(`The file ${asked} is being changed by others; try again`);
  }

  async #add(records: ReturnType<typeof draft>[], exists: Error): Promise<void> {
    try {
      await this.#loom.memory.batchSave({ userId: this.#userId, records });
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) {
        throw error;
      }
      const there = [];
      for (const { key } of records) {
        const [record] = await this.#list(`key = ${literal(key)}`, 1);
        there.push(...(record ? [record] : []));
      }
      // A renaming that was cut off leaves records under the old names.
      const left = there.filter((record) => record.supersededBy !== "");
      if (left.length === 0 || left.length < there.length) {
        throw exists;
      }
      await this.#forget(left);
      await this.#add(records, exists);
    }
  }

  async #forget(records: MemoryRecord[]): Promise<void> {
    for (const { id } of records) {
      await this.#loom.memory.deleteRecords({ userId: this.#userId, filter: `id = "${id}"` });
    }
  }

  async #file(path: string): Promise<MemoryRecord | undefined> {
    const [record] = await this.#list(named(path), 1);
    return record?.supersededBy === "" ? record : undefined;
  }

  /** Returns the files in a folder and the folders in it, or some of them. */
  async #below(path: string, limit = 0): Promise<MemoryRecord[]> {
    return (await this.#list(below(path), limit)).filter((record) => record.supersededBy === "");
  }

  async #list(filter: string, limit: number): Promise<MemoryRecord[]> {
    const all: MemoryRecord[] = [];
    let pageToken = "";
    do {
      const page = await this.#loom.memory.listRecords({ userId: this.#userId, filter, pageSize: limit, pageToken });
      all.push(...page.records);
      pageToken = page.nextPageToken;
    } while (pageToken !== "" && (limit === 0 || all.length < limit));
    return all;
  }

  async #checkFolders(path: string): Promise<void> {
    for (let folder = posix.dirname(path); folder !== ROOT; folder = posix.dirname(folder)) {
      if (await this.#file(folder)) {
        throw new Error(`The path ${folder} is not a directory`);
      }
    }
  }
}

/** Returns a path in its one form. */
function placeOf(path: string): string {
  if (!path.startsWith(ROOT)) {
    throw new Error(`Path must start with ${ROOT}, got: ${path}`);
  }
  const found = posix.join(ROOT, path.slice(ROOT.length)).replace(/\/$/, "");
  if (found !== ROOT && !found.startsWith(`${ROOT}/`)) {
    throw new Error(`Path ${path} would escape ${ROOT} directory`);
  }
  if (found.includes("\0") || Buffer.byteLength(found) > PATH_BYTES) {
    throw new Error(`Path ${path} is longer than ${PATH_BYTES} bytes, or has a NUL`);
  }
  return found;
}

function draft(path: string, content: string, supersedes = "") {
  if (Buffer.byteLength(content) > FILE_BYTES) {
    throw new Error(`File ${path} would be longer than 262,144 bytes`);
  }
  const about = textOf("metadata", { path, empty: content === "" });
  const metadataForm = { case: "metadataJson", value: about } as const;
  return { text: content || EMPTY, key: `${KIND}:${path}`, kind: KIND, metadataForm, supersedes };
}

function about(record: MemoryRecord): { path: string; empty: boolean } {
  return valueOf(record.metadataForm) as unknown as { path: string; empty: boolean };
}

function pathOf(record: MemoryRecord): string {
  return about(record).path;
}

function contentOf(record: MemoryRecord): string {
  return about(record).empty ? "" : record.text;
}

/** Returns a text as filters have it, where a * would stand for anything. */
function literal(text: string): string {
  return JSON.stringify(text).replaceAll("*", "\\\\*");
}

function named(path: string): string {
  return `key = ${literal(`${KIND}:${path}`)}`;
}

function below(path: string): string {
  return `${named(path).slice(0, -1)}/*"`;
}

function missing(path: string): Error {
  return new Error(`The path ${path} does not exist. Please provide a valid path.`);
}

function numbered(lines: string[], first: number, last: number): string {
  const shown = lines.slice(first - 1, last);
  return shown.map((line, n) => `${String(first + n).padStart(6)}\t${line}`).join("\n");
}

/** Returns the table of a folder: files and folders up to two levels deep, without hidden ones. */
function listing(asked: string, path: string, files: MemoryRecord[]): string {
  const sizes = new Map<string, number>();
  let total = 0;
  for (const file of files) {
    const names = pathOf(file).slice(path.length + 1).split("/");
    const size = Buffer.byteLength(contentOf(file));
    total += size;
    if (!names.slice(0, 2).some((name) => name.startsWith("."))) {
      for (let depth = 1; depth <= Math.min(2, names.length); depth++) {
        const name = names.slice(0, depth).join("/") + (depth < names.length ? "/" : "");
        sizes.set(name, (sizes.get(name) ?? 0) + size);
      }
    }
  }
  const lines = [...sizes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, size]) => `${sizeOf(size)}\t${asked}/${name}`);
  const header = `Here're the files and directories up to 2 levels deep in ${asked}, excluding hidden items and node_modules:`;
  return [header, `${sizeOf(total)}\t${asked}`, ...lines].join("\n");
}

function sizeOf(bytes: number): string {
  const unit = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 3);
  return `${(bytes / 1024 ** unit).toFixed(1).replace(".0", "")}${"BKMG"[unit]}`;
}
