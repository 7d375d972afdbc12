// Numbers, times and sections as people read them.
import { signal } from "@preact/signals";

// Intl is not asked: what a browser reads for it takes longer than all else of a first screen.
const grouped = (n: number): string => {
  const [whole, part] = String(Math.round(n * 1000) / 1000).split(".");
  return whole!.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
};

/** Compares two times of the API, the later first. */
export const later = (a = "", b = ""): number => (a < b ? 1 : a > b ? -1 : 0);

/** A number whole, with its thousands apart. */
export const count = (n: number | string | undefined): string => grouped(Number(n ?? 0));

/** The word for so many things: one, or several. */
export const plural = (n: number, one: string, several = one + "s"): string => (n === 1 ? one : several);

/** A number in few digits: 12.4k. */
export function brief(n: number): string {
  const [value, unit] = n >= 1e9 ? [n / 1e9, "G"] : n >= 1e6 ? [n / 1e6, "M"] : n >= 1e4 ? [n / 1e3, "k"] : [n, ""];
  return unit ? value.toFixed(value < 100 ? 1 : 0) + unit : grouped(value);
}

export function bytes(n: number | string | undefined): string {
  const value = Number(n ?? 0);
  return value < 1024 ? `${value} B` : value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : value < 1 << 30 ? `${(value / (1 << 20)).toFixed(1)} MiB` : `${(value / (1 << 30)).toFixed(2)} GiB`;
}

export const percent = (part: number, whole: number): string => (whole ? Math.round((100 * part) / whole) + " %" : "–");

/** A duration of the API, such as 0.000141s. */
export function lasting(text: string | undefined): string {
  const s = Number.parseFloat(text ?? "0");
  return s < 0.001 ? `${Math.round(s * 1e6)} µs` : s < 1 ? `${(s * 1e3).toFixed(1)} ms` : s < 120 ? `${s.toFixed(1)} s` : `${Math.round(s / 60)} min`;
}

/** Whether times are shown in UTC, exactly. */
export const utc = signal(false);
/** The time that "ago" counts from; it moves each ten seconds. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 10_000);

const units: [number, string][] = [[86400e3 * 365, "y"], [86400e3, "d"], [3600e3, "h"], [60e3, "min"], [1e3, "s"]];

export function ago(time: string): string {
  const passed = now.value - Date.parse(time);
  const [size, unit] = units.find(([u]) => Math.abs(passed) >= u) ?? [1e3, "s"];
  const n = Math.floor(Math.abs(passed) / size);
  return passed < -1e3 ? `in ${n} ${unit}` : n < 1 ? "now" : `${n} ${unit} ago`;
}

let local: Intl.DateTimeFormat | undefined;

export function exactly(time: string): string {
  return utc.value ? new Date(time).toISOString() : (local ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })).format(new Date(time));
}

/** The kinds of sections, in the order of every picture. */
export const kinds = ["system", "tools", "memory", "folded", "shown", "goal"] as const;
export type Kind = (typeof kinds)[number];

const kindOf: Record<string, Kind> = {
  system: "system", agents_md: "system", few_shot: "system", skills: "tools", tools: "tools",
  history: "shown", goal: "goal", plan: "goal", progress: "goal", errors: "goal", working: "goal", rehydrated: "folded",
};

/** The kind that a section of the API is of. Knowledge, notes and user_memory are memory. */
export const sectionKind = (name: string): Kind => kindOf[name] ?? "memory";

/** JSON text of a value; a few words for what is nested too deep for that. */
export function json(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch {
    return "JSON that is nested too deep to be shown";
  }
}

/** An enum of the API in words: STEP_OUTCOME_FAILED, prefix STEP_OUTCOME. */
export const words = (value: string | undefined, prefix: string): string => (value ?? "").replace(prefix + "_", "").toLowerCase().replaceAll("_", " ");
