// Calls of the server under /v1, and whether it answers.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

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

async function open(call: Call, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await send(call, signal);
  } catch (err) {
    if (signal?.aborted) throw err;
    gone();
    throw new Failure(0, "The server does not answer. Nothing was changed by this page; it tries again by itself.");
  }
  if (lost.value) {
    lost.value = false;
    returns.value++;
  }
  answered.value = Date.now();
  if (answer.ok) return answer;
  const status = await answer.json().catch(() => ({}));
  const reason = status.details?.find((d: { reason?: string }) => d.reason)?.reason ?? "";
  if (answer.status === 401) locked.value = token ? "The server does not take this token, or its time is over." : "This server asks who you are.";
  throw new Failure(answer.status, status.message ?? `HTTP ${answer.status}`, reason);
}

/** Makes a call and returns its answer. */
export async function ask<T>(call: Call, signal?: AbortSignal): Promise<T> {
  asking.value++;
  try {
    return await (await open(call, signal)).json();
  } finally {
    asking.value--;
  }
}

/** Makes a call whose answer is a stream, and hands over each message. */
export async function listen<T>(call: Call, signal: AbortSignal, each: (message: T) => void): Promise<void> {
  const reader = (await open(call, signal)).body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const { result, error } = JSON.parse(line);
      if (error) throw new Failure(500, error.message);
      each(result);
    }
  }
}

let trying: ReturnType<typeof setInterval> | undefined;

/** Waits for the server to be back. */
function gone(): void {
  lost.value = true;
  trying ??= setInterval(async () => {
    const back = await fetch("/healthz").then((r) => r.ok, () => false);
    if (!back) return;
    clearInterval(trying);
    trying = undefined;
    lost.value = false;
    returns.value++;
  }, 1000);
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
  const running = useRef(false);
  const back = returns.value;
  useEffect(() => {
    if (!call) return;
    shown.value = [...shown.value.filter((c) => curl(c) !== key), call];
    const ended = new AbortController();
    const load = async () => {
      if (running.current || (document.hidden && every)) return;
      running.current = true;
      try {
        const data = await ask<T>(call, ended.signal);
        set({ key, data });
      } catch (err) {
        if (!ended.signal.aborted && err instanceof Failure) {
          set((old) => ({ key, error: err, data: err.status === 0 && old.key === key ? old.data : undefined }));
        }
      } finally {
        running.current = false;
      }
    };
    running.current = false;
    void load();
    const timer = every ? setInterval(load, every * 1000) : undefined;
    return () => {
      ended.abort();
      clearInterval(timer);
      shown.value = shown.value.filter((c) => curl(c) !== key);
    };
  }, [key, again, back, every]);
  const current = state.key === key ? state : { key };
  return { data: current.data, error: current.error, loading: !!call && state.key !== key, reload: () => setAgain((n) => n + 1) };
}
