// The frame around every room: rail, jump field, help, and what is asked before anything is shown.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { answered, asking, curl, locked, lost, opener, shown, signIn, signOut, useAll } from "./api";
import { agent, go, path, to } from "./route";
import { count, plural, utc } from "./format";
import { Asking, Line, List, More, Shown, editing } from "./parts";
import type { ComponentChildren } from "preact";

const helping = signal(false);
const lining = signal(false);

interface Scopes {
  scopes?: { owner: { agentId?: string; userId?: string; spaceId?: string }; records?: string }[];
  nextPageToken?: string;
}

/** The agents that have a memory or were seen in this tab. */
export const agents = signal<string[]>([]);

function Rail() {
  const [first, , room] = path.value;
  const a = agent.value;
  const is = (name: string) => (name === (first === "a" ? { s: "sessions", m: "memory", w: "wires" }[room ?? ""] ?? "agents" : first ?? "now") ? "page" : undefined);
  const rooms: [string, string, string][] = [
    ["now", "Now", to([])],
    ["agents", "Agents", to(["a"])],
    ["sessions", "Sessions", a ? to(["a", a, "s"]) : to(["a"])],
    ["memory", "Memory", a ? to(["a", a, "m"]) : to(["a"])],
    ["hand", "Hand", to(["hand"])],
    ["wires", "Wires", a ? to(["a", a, "w"]) : to(["a"])],
    ["house", "House", to(["house"])],
  ];
  return (
    <nav class="rail" aria-label="Rooms">
      <a class="brand" href="/console/">
        Loom Bridge
      </a>
      {rooms.map(([name, text, address]) => (
        <a key={name} href={address} aria-current={is(name)}>
          {text}
        </a>
      ))}
      <a class="docs" href="/docs">
        API
      </a>
      {opener.value && (
        <button class="out" onClick={signOut}>
          sign out
        </button>
      )}
    </nav>
  );
}

/** What a text in the jump field can mean, best first. */
function meanings(text: string): [string, string][] {
  const a = agent.value;
  const found: [string, string][] = [];
  if (!text) return found;
  for (const name of agents.value) if (name.startsWith(text)) found.push([`agent ${name}`, to(["a", name, "s"])]);
  if (a && /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text)) found.push([`record ${text}`, to(["a", a, "m", text])]);
  if (a && /^step_\d+$/.test(text)) found.push([`step ${text} of ${a}`, to(["a", a, "step", text])]);
  if (a && /^[0-9a-f]{12,64}$/.test(text)) found.push([`blob ${text} of ${a}`, to(["a", a, "blob", text])]);
  const [one, session, prompt] = text.split("/");
  if (one && session) found.push([`session ${session} of ${one}`, prompt ? to(["a", one, "s", session, "p", prompt]) : to(["a", one, "s", session])]);
  if (a) found.push([`search the memory of ${a} for “${text}”`, to(["a", a, "m"], { q: text })], [`session ${text} of ${a}`, to(["a", a, "s", text])], [`topic ${text}`, to(["a", a, "w"], { topic: text })]);
  if (!/\s/.test(text)) found.push([`agent ${text}`, to(["a", text, "s"])]);
  return found.filter(([, address], i) => found.findIndex((f) => f[1] === address) === i);
}

function Jump() {
  const field = useRef<HTMLInputElement>(null);
  const [text, set] = useState("");
  const [chosen, choose] = useState(0);
  const found = meanings(text.trim());
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key === "k") {
        e.preventDefault();
        field.current?.focus();
        field.current?.select();
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const open = (i: number) => {
    const address = found[i]?.[1];
    if (!address) return;
    set("");
    field.current?.blur();
    go(address);
  };
  const key = (e: KeyboardEvent) => {
    e.stopPropagation();
    if (e.key === "Enter") open(chosen);
    else if (e.key === "Escape") set("");
    else if (e.key === "ArrowDown") choose(Math.min(chosen + 1, found.length - 1));
    else if (e.key === "ArrowUp") choose(Math.max(chosen - 1, 0));
    else return;
    e.preventDefault();
  };
  return (
    <div class="jump">
      <input
        ref={field}
        value={text}
        placeholder="Go to an agent, session, record, step, topic, or words   Ctrl K"
        aria-label="Go to"
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls="jumps"
        aria-activedescendant={found.length ? "jump" + chosen : undefined}
        onInput={(e) => {
          set(e.currentTarget.value);
          choose(0);
        }}
        onKeyDown={key}
      />
      <ul id="jumps" role="listbox" aria-label="Places" hidden={!found.length}>
        {found.map(([what, address], i) => (
          <li key={address} id={"jump" + i} role="option" aria-selected={i === chosen} onMouseDown={() => open(i)}>
            {what}
          </li>
        ))}
      </ul>
    </div>
  );
}

const keys: [string, string][] = [
  ["Ctrl K", "go to"],
  ["j k", "next and previous row of a list"],
  ["Enter", "open it"],
  ["[ ]", "previous and next prompt"],
  ["d", "difference to the prompt before"],
  ["u", "times exactly, in UTC"],
  ["{", "the lines of curl for what is shown"],
  ["e", "unlock editing in this tab"],
  ["?", "this list"],
  ["Esc", "close"],
];

function useKeys() {
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const on = e.target as HTMLElement;
      if (e.key === "Escape") helping.value = lining.value = false;
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(on.tagName)) return;
      if (e.key === "?") helping.value = !helping.value;
      else if (e.key === "{") lining.value = !lining.value;
      else if (e.key === "u") utc.value = !utc.value;
      else if (e.key === "e") editing.value = !editing.value;
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
}

/** Asks for the token of a server with credentials. */
function Lock() {
  const [token, set] = useState("");
  return (
    <main class="lock">
      <h1>Loom Bridge</h1>
      <p>{locked.value} Give a token of its credentials file. This browser gets a cookie for it, which ends with the token, when you sign out, and with the browser.</p>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void signIn(token);
        }}
      >
        <label class="field">
          <span>token</span>
          <input type="password" autoComplete="current-password" value={token} onInput={(e) => set(e.currentTarget.value)} />
        </label>
        <button class="main">go on</button>
      </form>
    </main>
  );
}

function Lines() {
  const lines = [...new Set(shown.value.map(curl))];
  return (
    <section class="panel lines" aria-label="Lines of curl">
      <div class="head">
        <h2>What is shown, from a shell</h2>
        <button onClick={() => (lining.value = false)}>close</button>
      </div>
      {lines.length ? lines.map((line) => <Line key={line} text={line} />) : <p>This screen asks the server nothing.</p>}
    </section>
  );
}

/** What is drawn anew as calls begin and end, so that the frame is not. */
function Main({ children }: { children: ComponentChildren }) {
  return <main aria-busy={asking.value > 0 || !answered.value}>{children}</main>;
}

export function Frame({ children }: { children: ComponentChildren }) {
  useKeys();
  const scopes = useAll<Scopes>({ method: "GET", path: "/v1/scopes", query: { kind: "SCOPE_KIND_AGENT", page_size: 1000 } }, 0, "scopes");
  useEffect(() => {
    const found = (scopes.data?.scopes ?? []).flatMap((s) => s.owner.agentId ?? []);
    if (agent.value && !found.includes(agent.value)) found.push(agent.value);
    agents.value = found;
    if (!agent.value && found[0]) agent.value = found[0];
  }, [scopes.data, agent.value]);
  if (locked.value) return <Lock />;
  return (
    <div class={lost.value ? "frame lost" : "frame"}>
      <Rail />
      <header>
        <Jump />
        <span class="state" role="status">
          {lost.value ? "the server does not answer; trying again" : "live"}
        </span>
        <button aria-pressed={editing.value} onClick={() => (editing.value = !editing.value)} title="What changes something is shown only while editing is on">
          {editing.value ? "editing" : "read only"}
        </button>
        <button aria-pressed={lining.value} aria-label="Lines of curl for what is shown" onClick={() => (lining.value = !lining.value)}>
          {"{}"}
        </button>
        <button aria-pressed={helping.value} aria-label="Keys" onClick={() => (helping.value = !helping.value)}>
          ?
        </button>
      </header>
      <Main>{children}</Main>
      {lining.value && <Lines />}
      {helping.value && (
        <section class="panel" aria-label="Keys">
          <div class="head">
            <h2>Keys</h2>
            <button onClick={() => (helping.value = false)}>close</button>
          </div>
          <dl class="keys">
            {keys.map(([key, what]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      <Asking />
    </div>
  );
}

/** Agents: those with a memory. */
export function Agents() {
  const scopes = useAll<Scopes>({ method: "GET", path: "/v1/scopes", query: { page_size: 1000 } }, 10, "scopes");
  const placeOf = ({ owner }: NonNullable<Scopes["scopes"]>[number]) => {
    const by = owner.agentId ?? agent.value;
    return by && to(["a", by, "m"], { user: owner.userId, space: owner.spaceId });
  };
  return (
    <>
      <h1>Agents and memories</h1>
      <Shown from={scopes}>
        {(data) =>
          data.scopes?.length ? (
            <>
              <More than={data.scopes.length} of="agents and memories" when={data.nextPageToken} />
              <List
                label="Agents and memories"
                rows={data.scopes}
                open={(s) => go(s.owner.agentId ? to(["a", s.owner.agentId, "s"]) : placeOf(s))}
                row={(s) => (
                  <>
                    <span class="grow cut name">{s.owner.agentId ?? s.owner.userId ?? s.owner.spaceId}</span>
                    <span class="w5 muted hide">{s.owner.agentId ? "agent" : s.owner.userId ? "person" : "space"}</span>
                    <span class="w6 n">
                      {count(s.records)} {plural(Number(s.records ?? 0), "record")}
                    </span>
                    <span class="w5 hide">{s.owner.agentId && <a href={to(["a", s.owner.agentId, "s"])}>sessions</a>}</span>
                    <span class="w5" onClick={(e) => e.stopPropagation()}>
                      {placeOf(s) && <a href={placeOf(s)}>memory</a>}
                    </span>
                  </>
                )}
              />
            </>
          ) : (
            <FirstVisit />
          )
        }
      </Shown>
    </>
  );
}

export function FirstVisit() {
  return (
    <div class="empty">
      <p>Here stands what your agents remember, say and do. There is nothing yet. These lines save a first record:</p>
      <Line text={curl({ method: "POST", path: "/v1/memories", body: { agent_id: "me", text: "Bitcoin closed at 45,000" } })} />
      <Line text={'async with loombridge.connect(agent_id="me") as ctx:\n    await ctx.memory_save("Bitcoin closed at 45,000")'} />
    </div>
  );
}

