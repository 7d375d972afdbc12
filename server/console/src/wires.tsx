// Wires: events, messages between agents, and the agents that one has spawned.
import { curl, useCall, useStream } from "./api";
import { count, json, lasting, words } from "./format";
import { Empty, Field, List, Shown, Text, Time, Tree, Trouble } from "./parts";
import { query, set, to } from "./route";

interface Event {
  id: string;
  topic: string;
  sequence?: string;
  source?: string;
  sessionId?: string;
  createTime?: string;
  payload?: unknown;
  payloadJson?: string;
  payloadBytes?: string;
  headers?: Record<string, string>;
  type?: string;
  tags?: string[];
}

const kept = 2000;
const day = 86_400_000;

interface Heard {
  events: Event[];
  cut: number;
  /** The server listens: what is not there is not kept. */
  begun: boolean;
}

const none: Heard = { events: [], cut: 0, begun: false };

/** The events of the last day that a pattern means, and those that come. */
function useEvents(agent: string, topic: string) {
  const { state, problem } = useStream<{ event?: Event }, Heard>(
    () => ({
      method: "GET", path: "/v1/events:subscribe",
      query: { agent_id: agent, topics: JSON.stringify({ topic, since: new Date(Date.now() - day).toISOString() }) },
    }),
    [agent, topic],
    none,
    (old, fresh) => {
      const all = [...fresh.flatMap((m) => m.event ?? []).reverse(), ...old.events];
      return { events: all.slice(0, kept), cut: old.cut + Math.max(0, all.length - kept), begun: true };
    },
  );
  return { ...state, problem };
}

export function Wires({ agent }: { agent: string }) {
  const topic = query.value.get("topic") || "**";
  const { events, problem, cut, begun } = useEvents(agent, topic);
  const chosen = query.value.get("event");
  const one = events.find((e) => e.id === chosen);
  return (
    <>
      <h1>
        Wires of <span class="name">{agent}</span>
      </h1>
      <Children agent={agent} />
      <Messages agent={agent} />
      <h2>Events</h2>
      <search class="filters">
        <Field label="topic, with * for a word and ** for the rest" value={topic === "**" ? "" : topic} placeholder="all of the last day" apply={(value) => set({ topic: value || undefined, event: undefined }, true)} />
      </search>
      {problem && <Trouble of={problem} />}
      <Topics events={events} cut={cut} />
      {begun && !events.length && !problem ? (
        <Empty
          what="Here stand the events of the last day, and each that comes. There is none yet; this line emits one."
          line={curl({ method: "POST", path: "/v1/topics/desk.news:emit", body: { agent_id: agent, payload: { headline: "Bitcoin closed" } } })}
        />
      ) : (
        <div class="split">
          <List
            label="Events, the last first"
            rows={events}
            chosen={(e) => e.id === chosen}
            open={(e) => set({ event: e.id })}
            row={(e) => (
              <>
                <span class="w5 n muted">
                  <Time at={e.createTime} />
                </span>
                <span class="w7 cut mono">{e.topic}</span>
                <span class="w4 n muted hide">{e.sequence ?? ""}</span>
                <span class="w5 cut name hide">{e.source}</span>
                <span class="grow cut muted">{payloadOf(e)}</span>
              </>
            )}
          />
          {one && (
            <aside aria-label="The event">
              <div class="head">
                <h2 class="name">{one.topic}</h2>
                <button onClick={() => set({ event: undefined })}>close</button>
              </div>
              <p class="muted">
                {one.sequence ? `the ${count(one.sequence)}. of its topic, kept` : "not kept"}, emitted by <span class="name">{one.source}</span> <Time at={one.createTime} />
                {one.sessionId && (
                  <>
                    {" "}
                    in <a href={to(["a", one.source ?? agent, "s", one.sessionId])}>{one.sessionId}</a>
                  </>
                )}
              </p>
              {one.payload !== undefined ? <Tree value={one.payload} name="payload" /> : <Text text={payloadOf(one)} />}
              {one.headers && <Tree value={one.headers} name="headers" />}
            </aside>
          )}
        </div>
      )}
    </>
  );
}

const payloadOf = (e: Event): string => (e.payload !== undefined ? json(e.payload) : e.payloadJson ?? (e.payloadBytes ? `${e.payloadBytes.length} characters of base64` : ""));

function Topics({ events, cut }: { events: Event[]; cut: number }) {
  const sums = new Map<string, number>();
  for (const e of events) sums.set(e.topic, (sums.get(e.topic) ?? 0) + 1);
  if (!sums.size) return null;
  const sorted = [...sums].sort(([, a], [, b]) => b - a);
  return (
    <p class="legend">
      {sorted.slice(0, 12).map(([topic, n]) => (
        <button key={topic} onClick={() => set({ topic }, true)}>
          <span class="name">{topic}</span> <b>{count(n)}</b>
        </button>
      ))}
      {sorted.length > 12 && <span>{sorted.length - 12} more topics</span>}
      {cut > 0 && <span>{count(cut)} older events are not held here</span>}
    </p>
  );
}

interface Child {
  childId: string;
  parentId?: string;
  goal?: string;
  sessionId?: string;
  depth?: number;
  status?: string;
  result?: string;
  error?: string;
  limits?: { steps?: string; tokensPerStep?: string; timeout?: string };
}

/** The agents that this one has spawned. */
function Children({ agent }: { agent: string }) {
  const found = useCall<{ children?: Child[] }>({ method: "GET", path: "/v1/children:wait", query: { agent_id: agent } }, 5);
  const rows = found.data?.children ?? [];
  if (!rows.length) return null;
  return (
    <section>
      <h2>Agents that it has spawned</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Spawned agents">
        <table>
          <thead>
            <tr>
              <th>agent</th>
              <th class="n">depth</th>
              <th>state</th>
              <th>goal</th>
              <th>result</th>
              <th>limits</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((c) => (
              <tr key={c.childId}>
                <td>
                  <a class="name" href={to(["a", c.childId, "s", c.sessionId ?? "default"])}>
                    {c.childId}
                  </a>
                </td>
                <td class="n">{c.depth ?? 0}</td>
                <td>{words(c.status, "CHILD_STATUS")}</td>
                <td>{c.goal}</td>
                <td class={c.error ? "failed" : ""}>{c.error || c.result}</td>
                <td class="muted cut">
                  {[c.limits?.steps && `${count(c.limits.steps)} steps`, c.limits?.timeout && lasting(c.limits.timeout)].filter(Boolean).join(", ")}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface Direct {
  taskId: string;
  sourceAgentId?: string;
  content?: string;
  priority?: number;
  createTime?: string;
}

/** The messages of other agents that wait for this one. */
function Messages({ agent }: { agent: string }) {
  const found = useCall<{ messages?: Direct[] }>({ method: "GET", path: "/v1/messages", query: { agent_id: agent } }, 5);
  const rows = found.data?.messages ?? [];
  return (
    <Shown from={found}>
      {() =>
        rows.length > 0 && (
          <section>
            <h2>Messages of other agents to it</h2>
            <div class="scroll" tabIndex={0} role="region" aria-label="Messages">
              <table>
                <thead>
                  <tr>
                    <th>from</th>
                    <th class="n">priority</th>
                    <th>says</th>
                    <th>when</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((m) => (
                    <tr key={m.taskId}>
                      <td class="name">{m.sourceAgentId}</td>
                      <td class="n">{(m.priority ?? 0).toFixed(2)}</td>
                      <td class="text">{m.content}</td>
                      <td>
                        <Time at={m.createTime} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        )
      }
    </Shown>
  );
}
