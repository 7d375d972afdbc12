// The address: it says exactly what is seen.
import { computed, effect, signal } from "@preact/signals";

const base = "/console/";
const current = signal(location.pathname + location.search);

addEventListener("popstate", () => (current.value = location.pathname + location.search));

/** The parts of the path behind /console/. */
export const path = computed(() => {
  const { pathname } = new URL(current.value, location.origin);
  return pathname.slice(base.length).split("/").filter(Boolean).map(decode);
});

/** What stands behind the question mark. */
export const query = computed(() => new URL(current.value, location.origin).searchParams);

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page of the console. */
export function to(parts: string[], params: Record<string, string | undefined> = {}): string {
  const given = Object.entries(params).filter((p): p is [string, string] => !!p[1]);
  const search = new URLSearchParams(given).toString();
  return base + parts.map(encodeURIComponent).join("/") + (search && "?" + search);
}

/** Goes to an address, with a way back. */
export function go(address: string): void {
  if (address === current.value) return;
  history.pushState(null, "", address);
  current.value = address;
}

/** Changes what stands behind the question mark, in place of what was there. */
export function set(params: Record<string, string | undefined>, back = false): void {
  const given = Object.fromEntries(query.value);
  const address = to(path.value, { ...given, ...params });
  if (back) return go(address);
  history.replaceState(null, "", address);
  current.value = address;
}

addEventListener("click", (event) => {
  const link = (event.target as Element).closest?.("a[href^='/console/']");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(link.getAttribute("href")!);
});

/** The agent that is looked at: of the address, or the last one. */
export const agent = signal("");
effect(() => {
  const [room, name] = path.value;
  if (room === "a" && name) agent.value = name;
});
