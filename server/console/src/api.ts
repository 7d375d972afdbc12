// Calls of the server under /v1, and whether it answers.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

/** A call: what `{}` shows as a line for a shell, and what fetch sends. */
export interface Call {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, Value>;
  body?: object;
}

export type Value = string | number | boolean | undefined | string[];

/** Why a call failed: the server's google.rpc.Status, or that it did not answer. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly reason = "",
  ) {
    super(message);
  }
}

/** Whether the last call found no server. */
export const lost = signal(false);
/** When the last answer came. */
export const answered = signal(0);
/** How many calls wait for their answers, streams aside. */
export const asking = signal(0);
/** How often the server came back: what is shown is loaded anew. */
export const returns = signal(0);
/** Whether the server wants a token. It is in this tab's memory alone. */
export const locked = signal("");
/** The calls whose answers are on the screen. */
export const shown = signal<Call[]>([]);

let token = "";

export function unlock(given: string): void {
  token = given.trim();
  locked.value = "";
  returns.value++;
}

/** Path encodes ids as parts of a path. */
export function at(strings: TemplateStringsArray, ...ids: string[]): string {
  return String.raw({ raw: strings }, ...ids.map(encodeURIComponent));
}

function url(call: Call): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value === undefined || value === "" || value === false) continue;
    for (const one of Array.isArray(value) ? value : [String(value)]) query.append(name, one);
  }
  const text = query.toString();
  return call.path + (text && "?" + text);
}

/** The call for a shell. */
export function curl(call: Call): string {
  const quote = (text: string) => "'" + text.replaceAll("'", `'\\''`) + "'";
  let line = "curl ";
  if (call.method !== "GET") line += `-X ${call.method} `;
  if (token) line += `-H "Authorization: Bearer $TOKEN" `;
  line += quote(location.origin + url(call));
  if (call.body) line += ` -H 'Content-Type: application/json' -d ${quote(JSON.stringify(call.body))}`;
  return line;
}

function send(call: Call, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  if (token) headers.Authorization = "Bearer " + token;
  if (call.body) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method: call.method, headers };
  if (signal) init.signal = signal;
  if (call.body) init.body = JSON.stringify(call.body);
  return fetch(url(call), init);
}

/** The statuses of HTTP for the codes by which a stream ends. */
const statuses: Record<number, number> = { 3: 400, 5: 404, 7: 403, 8: 429, 9: 400, 12: 501, 14: 503, 16: 401 };

interface Status {
  code?: number;
  message?: string;
  details?: { reason?: string }[];
}

function refused(status: number, said: Status): Failure {
  if (status === 401) locked.value = token ? "The server does not take this token, or its time is over." : "This server asks who you are.";
  return new Failure(status, said.message ?? `HTTP ${status}`, said.details?.find((d) => d.reason)?.reason);
}

async function open(call: Call, signal?: AbortSignal): Promise<Response> {
  const answer = await send(call, signal).catch((err) => {
    throw signal?.aborted ? err : gone();
  });
  if (lost.value) back();
  answered.value = Date.now();
  if (answer.ok) return answer;
  throw refused(answer.status, await answer.json().catch(() => ({})));
}

/** Makes a call and returns its answer. */
export async function ask<T>(call: Call, signal?: AbortSignal): Promise<T> {
  asking.value++;
  try {
    const answer = await open(call, signal);
    return await answer.json().catch((err) => {
      throw signal?.aborted ? err : gone();
    });
  } finally {
    asking.value--;
  }
}

/** Makes a call whose answer is a stream, and hands over each message. */
export async function listen<T>(call: Call, signal: AbortSignal, each: (message: T) => void): Promise<void> {
  const reader = (await open(call, signal)).body!.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read().catch((err) => {
        throw signal.aborted ? err : gone();
      });
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const { result, error } = JSON.parse(line) as { result: T; error?: Status };
        if (error) throw refused(statuses[error.code ?? 0] ?? 500, error);
        each(result);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

let trying: ReturnType<typeof setInterval> | undefined;

/** Notes that the server is gone, waits for it to be back, and returns what the call failed with. */
function gone(): Failure {
  lost.value = true;
  trying ??= setInterval(() => void fetch("/healthz").then((r) => r.ok && lost.value && back(), () => {}), 1000);
  return new Failure(0, "The server does not answer. This page tries again by itself; look whether what you changed last was done.");
}

function back(): void {
  clearInterval(trying);
  trying = undefined;
  lost.value = false;
  returns.value++;
}

export interface Loaded<T> {
  data?: T | undefined;
  error?: Failure | undefined;
  loading: boolean;
  reload: () => void;
}

/** Loads what a screen shows, anew when the call changes, the server is back, or some
 * seconds have passed. What was shown stays until the next answer. */
export function useCall<T>(call: Call | undefined, every = 0): Loaded<T> {
  const key = call ? curl(call) : "";
  const [state, set] = useState<{ key: string; data?: T | undefined; error?: Failure | undefined }>({ key: "" });
  const [again, setAgain] = useState(0);
  const back = returns.value;
  useEffect(() => {
    if (!call) return;
    shown.value = [...shown.value, call];
    const ended = new AbortController();
    let running = false;
    const load = async () => {
      if (running || (document.hidden && every)) return;
      running = true;
      try {
        const data = await ask<T>(call, ended.signal);
        set({ key, data });
      } catch (err) {
        if (!ended.signal.aborted && err instanceof Failure) {
          set((old) => ({ key, error: err, data: err.status === 0 && old.key === key ? old.data : undefined }));
        }
      } finally {
        running = false;
      }
    };
    void load();
    const timer = every ? setInterval(load, every * 1000) : undefined;
    return () => {
      ended.abort();
      clearInterval(timer);
      shown.value = shown.value.filter((c) => c !== call);
    };
  }, [key, again, back, every]);
  const current = state.key === key ? state : { key };
  return { data: current.data, error: current.error, loading: !!call && state.key !== key, reload: () => setAgain((n) => n + 1) };
}

interface Page {
  nextPageToken?: string;
}

export interface Paged<T> extends Loaded<T[]> {
  /** Asks for the next page; undefined while there is none to ask for. */
  more: (() => void) | undefined;
}

/** Loads the rows of a call that answers in pages, the newest first. The first page is loaded
 * as by useCall: what it no longer has stays behind it, as far as the two hang together. */
export function usePages<P extends Page, T>(call: Call, every: number, rowsOf: (page: P) => T[] | undefined, name: (row: T) => string): Paged<T> {
  const first = useCall<P>(call, every);
  const key = curl(call);
  const [held, hold] = useState<{ key: string; rows: T[]; next?: string | undefined; asking?: boolean; error?: Failure | undefined }>({ key: "", rows: [] });
  useEffect(() => {
    const page = first.data;
    if (!page) return;
    hold((old) => {
      const rows = rowsOf(page) ?? [];
      const names = new Set(rows.map(name));
      const last = old.key === key && page.nextPageToken ? old.rows.findLastIndex((r) => names.has(name(r))) : -1;
      if (last < 0) return { key, rows, next: page.nextPageToken };
      return { ...old, rows: rows.concat(old.rows.slice(last + 1)), error: undefined };
    });
  }, [first.data]);
  const current = held.key === key;
  const more = () => {
    hold((old) => ({ ...old, asking: true }));
    ask<P>({ ...call, query: { ...call.query, page_token: held.next } }).then(
      (page) =>
        hold((old) => {
          if (old.key !== key) return old;
          const names = new Set(old.rows.map(name));
          return { key, rows: old.rows.concat((rowsOf(page) ?? []).filter((r) => !names.has(name(r)))), next: page.nextPageToken };
        }),
      (error) => hold((old) => (old.key === key ? { ...old, asking: false, error } : old)),
    );
  };
  return {
    ...first,
    data: current ? held.rows : undefined,
    error: first.error ?? (current ? held.error : undefined),
    loading: first.loading || (!current && !first.error),
    more: current && held.next && !held.asking && !held.error ? more : undefined,
    reload: () => {
      hold((old) => ({ ...old, error: undefined }));
      first.reload();
    },
  };
}

/** Listens as long as its screen is there, and again when the stream ends or the server is
 * back; begin is called before each time. What may not be heard is returned, and not tried again. */
export function useStream<T>(make: () => Call, about: unknown[], begin: () => void, each: (message: T) => void): Failure | undefined {
  const [problem, setProblem] = useState<Failure>();
  const [again, setAgain] = useState(0);
  const back = returns.value;
  useEffect(() => {
    const ended = new AbortController();
    const call = make();
    shown.value = [...shown.value, call];
    setProblem(undefined);
    begin();
    let pause: ReturnType<typeof setTimeout> | undefined;
    listen<T>(call, ended.signal, each)
      .catch((err) => (err instanceof Failure ? err : new Failure(500, String(err))))
      .then((err) => {
        if (ended.signal.aborted) return;
        if (err && err.status >= 400 && err.status < 429) setProblem(err);
        else pause = setTimeout(() => setAgain((n) => n + 1), 1000);
      });
    return () => {
      clearTimeout(pause);
      ended.abort();
      shown.value = shown.value.filter((c) => c !== call);
    };
  }, [back, again, ...about]);
  return problem;
}
