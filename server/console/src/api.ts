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
/** Why the server wants a token, if it does. */
export const locked = signal("");
/** The calls whose answers are on the screen. */
export const shown = signal<Call[]>([]);

/** What opens the cookie that stands for a token, and says that there is one: all tabs of this
 * server have it, and nobody else. The browser may keep neither. */
const kept = "key";
export const opener = signal(stored());

function stored(): string {
  try {
    return localStorage.getItem(kept) ?? "";
  } catch {
    return "";
  }
}

function keep(next: string): void {
  opener.value = next;
  try {
    if (next) localStorage.setItem(kept, next);
    else localStorage.removeItem(kept);
  } catch {} // this tab alone has it
}

// Another tab has signed in or out.
addEventListener("storage", (e) => {
  if (e.key !== null && e.key !== kept) return;
  opener.value = stored();
  locked.value = opener.value ? "" : locked.value || "You are signed out.";
  if (opener.value) returns.value++;
});

/** Trades a token for a cookie, of which no script sees anything. */
export async function signIn(token: string): Promise<void> {
  const answer = await fetch("/sign-in", { method: "POST", headers: { Authorization: "Bearer " + token.trim() } }).catch(() => undefined);
  if (!answer?.ok) {
    locked.value = !answer ? "The server does not answer." : answer.status === 401 ? "The server does not take this token, or its time is over." : ((await answer.json().catch(() => ({}))) as Status).message ?? `HTTP ${answer.status}.`;
    return;
  }
  keep(((await answer.json()) as { key: string }).key);
  locked.value = "";
  returns.value++;
}

/** Gives the cookie back, for all tabs. */
export async function signOut(): Promise<void> {
  const answer = await fetch("/sign-in", { method: "DELETE" }).catch(() => undefined);
  keep("");
  locked.value = answer?.ok ? "You are signed out." : "You are signed out here; the server did not answer.";
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
  if (opener.value) line += `-H "Authorization: Bearer $TOKEN" `;
  line += quote(location.origin + url(call));
  if (call.body) line += ` -H 'Content-Type: application/json' -d ${quote(JSON.stringify(call.body))}`;
  return line;
}

function send(call: Call, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  if (opener.value) headers["Loom-Key"] = opener.value;
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

/** Why a call failed that was made with a key. */
function refused(status: number, said: Status, by: string): Failure {
  const now = stored();
  if (status === 401 && now && now !== by) {
    opener.value = now; // another tab has signed in anew
    returns.value++;
  } else if (status === 401 && by === opener.value) {
    locked.value ||= by ? "You were signed out: the time of your token is over." : "This server asks who you are.";
    keep("");
  }
  return new Failure(status, said.message ?? `HTTP ${status}`, said.details?.find((d) => d.reason)?.reason);
}

async function open(call: Call, signal?: AbortSignal): Promise<Response> {
  const by = opener.value;
  const answer = await send(call, signal).catch((err) => {
    throw signal?.aborted ? err : gone();
  });
  if (lost.value) back();
  answered.value = Date.now();
  if (answer.ok) return answer;
  throw refused(answer.status, await answer.json().catch(() => ({})), by);
}

async function read<T>(call: Call, signal: AbortSignal | undefined, body: (answer: Response) => Promise<T>): Promise<T> {
  asking.value++;
  try {
    return await body(await open(call, signal)).catch((err) => {
      throw signal?.aborted || err instanceof Failure ? err : gone();
    });
  } finally {
    asking.value--;
  }
}

/** Makes a call and returns its answer. */
export const ask = <T>(call: Call, signal?: AbortSignal): Promise<T> => read<T>(call, signal, (answer) => answer.json());

/** Makes a call and returns the text of its answer. */
export const askText = (call: Call, signal?: AbortSignal): Promise<string> => read(call, signal, (answer) => answer.text());

/** Makes a call whose answer is a stream, and hands over each message. */
export async function listen<T>(call: Call, signal: AbortSignal, each: (message: T) => void): Promise<void> {
  const by = opener.value;
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
        if (error) throw refused(statuses[error.code ?? 0] ?? 500, error, by);
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
export function useCall<T>(call: Call | undefined, every = 0, load?: (call: Call, signal: AbortSignal) => Promise<T>, about = ""): Loaded<T> {
  const key = call ? curl(call) + about : "";
  const [state, set] = useState<{ key: string; data?: T | undefined; error?: Failure | undefined }>({ key: "" });
  const [again, setAgain] = useState(0);
  const back = returns.value;
  useEffect(() => {
    if (!call) return;
    shown.value = [...shown.value, call];
    const ended = new AbortController();
    let running = false;
    let before = "";
    const next = async () => {
      if (running || (document.hidden && every)) return;
      running = true;
      try {
        if (load) set({ key, data: await load(call, ended.signal) });
        else {
          const text = await askText(call, ended.signal);
          if (text !== before) set({ key, data: JSON.parse(text) }); // the same is neither read nor drawn again
          before = text;
        }
      } catch (err) {
        before = "";
        if (!ended.signal.aborted && err instanceof Failure) {
          set((old) => ({ key, error: err, data: err.status === 0 && old.key === key ? old.data : undefined }));
        }
      } finally {
        running = false;
      }
    };
    void next();
    const timer = every ? setInterval(next, every * 1000) : undefined;
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

/** Pages that a list is read of. */
const mostPages = 20;

/** Loads a call that answers in pages as one page, with the token of the next where there
 * are more than 20. */
export function useAll<P extends Page>(call: Call | undefined, every: number, list: keyof P): Loaded<P> {
  return useCall<P>(call, every, async (first, signal) => {
    let all = await ask<P>(first, signal);
    for (let n = 1; n < mostPages && all.nextPageToken; n++) {
      const next = await ask<P>({ ...first, query: { ...first.query, page_token: all.nextPageToken } }, signal);
      all = { ...all, nextPageToken: next.nextPageToken, [list]: [...((all[list] as unknown[]) ?? []), ...((next[list] as unknown[]) ?? [])] };
    }
    return all;
  });
}

export interface Paged<T> extends Loaded<T[]> {
  /** Asks for the next page; undefined while there is none to ask for. */
  more: (() => void) | undefined;
}

/** Loads the rows of a call that answers in pages, the newest first. The first page is loaded
 * as by useCall: what it no longer has stays behind it where further pages were asked for, as
 * far as the two hang together. */
export function usePages<P extends Page, T>(call: Call, every: number, rowsOf: (page: P) => T[] | undefined, name: (row: T) => string): Paged<T> {
  const first = useCall<P>(call, every);
  const key = curl(call);
  const [held, hold] = useState<{ key: string; rows: T[]; next?: string | undefined; deep?: boolean; asking?: boolean; error?: Failure | undefined }>({ key: "", rows: [] });
  useEffect(() => {
    const page = first.data;
    if (!page) return;
    hold((old) => {
      const rows = rowsOf(page) ?? [];
      const names = new Set(rows.map(name));
      const last = old.key === key && old.deep && page.nextPageToken ? old.rows.slice(0, rows.length).findLastIndex((r) => names.has(name(r))) : -1;
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
          const rows = rowsOf(page) ?? [];
          const names = new Set(old.rows.slice(-rows.length).map(name));
          return { key, rows: old.rows.concat(rows.filter((r) => !names.has(name(r)))), next: page.nextPageToken, deep: true };
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

/** Streams of one kind that the tabs of a browser hold open. It opens six connections to a
 * server, and calls need some of them; further streams are looked into now and then. */
const mostStreams = 2;
/** How long such a look takes, and the pause behind it, in ms. */
const look = 1000;
const pauses = 3000;

/** Runs one tab after the other, where the browser can tell them apart. */
async function inTurn(name: string, signal: AbortSignal, run: () => Promise<void>): Promise<void> {
  await (navigator.locks ? navigator.locks.request(name, { signal }, run) : run());
}

/** Runs with one of the places for open streams, and says whether there was one. */
async function placed(kind: string, run: () => Promise<void>): Promise<boolean> {
  for (let n = 0; n < mostStreams; n++) {
    const had = await navigator.locks.request(`${kind} ${n}`, { ifAvailable: true }, async (lock) => lock && (await run(), true));
    if (had) return true;
  }
  return false;
}

type Told<T, S> = { ask: true } | { state: S } | { fresh: T };

/** Listens as long as its screen is there, and again when the stream ends or the server is
 * back; add puts what came to what was there. Of the tabs that show the same, one listens
 * and tells the others; when it goes, another one does. What may not be heard is returned,
 * and not tried again. */
export function useStream<T, S>(make: () => Call, about: unknown[], none: S, add: (state: S, fresh: T[]) => S): { state: S; problem: Failure | undefined } {
  const [state, set] = useState(none);
  const [problem, setProblem] = useState<Failure>();
  const [again, setAgain] = useState(0);
  const back = returns.value;
  useEffect(() => {
    const ended = new AbortController();
    const { signal } = ended;
    const call = make();
    shown.value = [...shown.value, call];
    let now = none;
    let come: T[] = [];
    let leads = false;
    const put = (next: S) => {
      come = [];
      set((now = next));
    };
    const flush = () => come.length && put(add(now, come));
    put(none);
    setProblem(undefined);
    // What comes is drawn together, ten times a second at most.
    const timer = setInterval(flush, 100);
    // Who signs in anew may see other things.
    const name = call.path + JSON.stringify(about) + opener.value;
    const others = new BroadcastChannel(name);
    const tell = (told: Told<T, S>) => others.postMessage(told);
    others.onmessage = ({ data }: MessageEvent<Told<T, S>>) => {
      if ("state" in data) put(data.state);
      else if ("fresh" in data) come.push(data.fresh);
      else if (leads) {
        flush();
        tell({ state: now });
      }
    };
    const stream = () => {
      put(none);
      tell({ state: none });
      return listen<T>(call, signal, (m) => {
        come.push(m);
        tell({ fresh: m });
      });
    };
    const lead = async () => {
      leads = true;
      try {
        while (navigator.locks ? !(await placed(call.path, stream)) : await stream().then(() => false)) {
          const all: T[] = [];
          await listen<T>(call, AbortSignal.any([signal, AbortSignal.timeout(look)]), (m) => all.push(m)).catch((err) => {
            if (signal.aborted || err instanceof Failure) throw err;
          });
          put(add(none, all));
          tell({ state: now });
          await new Promise((done) => setTimeout(done, pauses));
          signal.throwIfAborted();
        }
      } finally {
        leads = false;
      }
    };
    let pause: ReturnType<typeof setTimeout> | undefined;
    tell({ ask: true });
    inTurn(name, signal, lead)
      .catch((err) => (err instanceof Failure ? err : new Failure(500, String(err))))
      .then((err) => {
        if (signal.aborted) return;
        if (err && err.status >= 400 && err.status < 429) setProblem(err);
        else pause = setTimeout(() => setAgain((n) => n + 1), 1000);
      });
    return () => {
      clearTimeout(pause);
      clearInterval(timer);
      others.close();
      ended.abort();
      shown.value = shown.value.filter((c) => c !== call);
    };
  }, [back, again, ...about]);
  return { state, problem };
}
