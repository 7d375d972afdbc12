// Now: what goes on, and what is wrong.
import { useState } from "preact/hooks";
import { ask, type Call, opener, useCall } from "./api";
import { brief, count, lasting, later, now, percent, words } from "./format";
import { FirstVisit, agents } from "./frame";
import { type Audit, good, Inbox, lastCalls } from "./hand";
import { Bar, Shown, Time } from "./parts";
import { to } from "./route";
import { promptsCall, type Sent } from "./sessions";

export interface Status {
  version?: string;
  startTime?: string;
  durability?: string;
  storeFormat?: number;
  authentication?: boolean;
  tools?: number;
  store?: { writable?: boolean; problem?: string; damage?: string[]; scrubTime?: string };
  sandbox?: { setting?: string; tier?: string; layers?: string[]; gaps?: string[]; problems?: string[] };
  backups?: { last?: { name?: string; createTime?: string; bytes?: string }; failing?: boolean };
  toolCalls?: Record<string, string>;
  redacted?: Record<string, string>;
  bridges?: { name?: string; address?: string; answering?: boolean; away?: boolean }[];
  retention?: { deletedRecords?: string; deletedSessions?: string; sweepTime?: string; failing?: boolean };
}

export const statusCall: Call = { method: "GET", path: "/v1/status" };

/** What does not go as it should, in words. */
export function troubles(s: Status): string[] {
  return [
    ...(s.store?.writable === false ? [`The store takes no writes: ${s.store.problem ?? ""}`] : []),
    ...(s.store?.damage ?? []).map((d) => `Damaged: ${d}`),
    ...(s.sandbox?.problems ?? []).map((p) => `Sandbox: ${p}`),
    ...(s.backups?.failing ? ["The last backup failed."] : []),
    ...(s.retention?.failing ? ["Deleting what is too old fails."] : []),
    ...(s.bridges ?? []).filter((b) => !b.answering && !b.away).map((b) => `The server ${b.name} at ${b.address} does not answer.`),
  ];
}

export function Now() {
  const status = useCall<Status>(statusCall, 5);
  return (
    <>
      <h1>Now</h1>
      <Shown from={status}>
        {(s) => {
          const wrong = troubles(s);
          return (
            <>
              {wrong.length ? wrong.map((t) => <p key={t} class="trouble" role="alert">{t}</p>) : <p>All is well. Running {s.startTime && lasting((Math.max(now.value, Date.now()) - Date.parse(s.startTime)) / 1000 + "s")}, version <span class="name">{s.version}</span>.</p>}
              {!agents.value.length && <FirstVisit />}
            </>
          );
        }}
      </Shown>
      <Inbox />
      <Hour />
      <Spend />
    </>
  );
}

/** The calls of the last hour, by the minute. */
function Hour() {
  const [call, setCall] = useState(lastCalls);
  const found = useCall<{ records?: Audit[]; nextPageToken?: string }>(call, 5);
  const minute = Math.floor(Math.max(now.value, Date.now()) / 60_000); // drawn anew as time passes
  if (call.query?.start_time !== lastCalls().query?.start_time) setCall(lastCalls);
  return (
    <section>
      <h2>Calls of tools in the last hour, by the minute</h2>
      <Shown from={found}>
        {(data) => {
          const records = data.records ?? [];
          const sums = Array.from({ length: 60 }, () => [0, 0] as [number, number]);
          for (const r of records) {
            const at = 59 - (minute - Math.floor(Date.parse(r.createTime ?? "") / 60_000));
            if (sums[at]) sums[at][good(r.outcome) ? 0 : 1]++;
          }
          const most = Math.max(1, ...sums.map(([a, b]) => a + b));
          const failed = records.filter((r) => !good(r.outcome));
          return (
            <>
              <p class="figures">
                <b>{count(records.length)}</b>{data.nextPageToken && " or more"} calls, <b class={failed.length ? "failed" : ""}>{count(failed.length)}</b> of them failed or were refused
              </p>
              <div class="chart">
                <div class="axis muted" aria-hidden="true">
                  <span>{most}</span>
                  <span>0</span>
                </div>
                <svg viewBox="0 0 600 60" preserveAspectRatio="none" class="hour" role="img" aria-label={`${records.length} calls in the last hour`}>
                  {sums.map(([ok, not], i) => (
                    <g key={i}>
                      <title>{`${59 - i} min ago: ${ok} ok, ${not} not`}</title>
                      <rect x={i * 10} width="10" height="60" class="hit" />
                      <rect class="k-accent" x={i * 10 + 1} width="8" y={60 - (60 * ok) / most} height={(60 * ok) / most} />
                      <rect class="k-failed" x={i * 10 + 1} width="8" y={60 - (60 * (ok + not)) / most} height={(60 * not) / most} />
                    </g>
                  ))}
                </svg>
              </div>
              {failed.slice(0, 5).map((r) => (
                <p key={r.number} class="cut">
                  <Time at={r.createTime} /> <a href={to(["hand"], { call: r.number })}>{r.tool}</a> <span class="failed">{words(r.outcome, "AUDIT_OUTCOME")}</span> {r.code} <span class="name">{r.agentId}</span>
                </p>
              ))}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

interface Spent {
  sessions: number;
  sent: Sent[];
  /** The sessions that were used last. */
  last: (Info & { agent: string })[];
  /** Why it is not all of the day. */
  cut: string[];
}

const day = 86_400_000;
/** How many agents, and of each how many sessions, the spend of the day is added up of. */
const [mostAgents, mostSessions, mostRecent] = [200, 20, 12];
/** How many such calls run at once: a browser opens six connections, and others need some. */
let places = 4;
const waiting: (() => void)[] = [];

/** Makes a call once there is a place for it. */
async function inPlace<T>(call: Call, signal: AbortSignal): Promise<T> {
  if (places) places--;
  else await new Promise<void>((go) => waiting.push(go));
  try {
    return await ask<T>(call, signal);
  } finally {
    const next = waiting.shift();
    if (next) next();
    else places++;
  }
}

type Known = Map<string, { used: string; prompts: Sent[] }>;

/** The prompts of the sessions that were read last, and when each had been used. */
let known: Known = new Map();

/** The prompts of a session, asked for only if it was used since. */
async function promptsOf(agent: string, s: Info, next: Known, signal: AbortSignal): Promise<Sent[]> {
  const call = promptsCall(agent, s.sessionId);
  const key = opener.value + call.path + " " + agent;
  const before = known.get(key);
  const prompts = before?.used === s.updateTime ? before!.prompts : ((await inPlace<{ prompts?: Sent[] }>(call, signal)).prompts ?? []);
  next.set(key, { used: s.updateTime ?? "", prompts });
  return prompts;
}

/** The prompts of the last day, of the sessions that were used in it. */
async function spent(signal: AbortSignal): Promise<Spent> {
  const since = Date.now() - day;
  const all: Spent = { sessions: 0, sent: [], last: [], cut: [] };
  const next: Known = new Map();
  if (agents.value.length > mostAgents) all.cut.push(`${count(agents.value.length - mostAgents)} agents are not counted`);
  await Promise.all(agents.value.slice(0, mostAgents).map(one));
  async function one(name: string) {
    const page = await inPlace<{ sessions?: Info[]; nextPageToken?: string }>({ method: "GET", path: "/v1/sessions", query: { agent_id: name, page_size: 1000, include_closed: true } }, signal);
    const newest = (page.sessions ?? []).sort((a, b) => later(a.updateTime, b.updateTime));
    all.last.push(...newest.slice(0, mostRecent).map((s) => ({ ...s, agent: name })));
    const used = newest.filter((s) => Date.parse(s.updateTime ?? "") >= since);
    if (page.nextPageToken || used.length > mostSessions) all.cut.push(`only ${count(Math.min(used.length, mostSessions))} sessions of ${name} are counted`);
    const counted = used.slice(0, mostSessions);
    const sent = await Promise.all(counted.map((s) => promptsOf(name, s, next, signal)));
    for (const [i, s] of counted.entries()) {
      const prompts = sent[i]!;
      const today = prompts.filter((p) => Date.parse(p.createTime ?? "") >= since);
      if (today.length && today[0] === prompts[0] && Number(prompts[0]!.number) > 1) all.cut.push(`${name} keeps only its last prompts of ${s.sessionId}`);
      if (today.length) all.sessions++;
      all.sent.push(...today);
    }
  }
  known = next;
  all.last = all.last.sort((a, b) => later(a.updateTime, b.updateTime)).slice(0, mostRecent);
  return all;
}

/** What the prompts of the last day cost, what they would have with nothing folded, and the
 * sessions that were used last. */
function Spend() {
  const names = agents.value.join(" ");
  const found = useCall<Spent>(names ? { method: "GET", path: "/v1/sessions", query: { agent_id: agents.value[0], page_size: 1000, include_closed: true } } : undefined, 15, (_, signal) => spent(signal), names);
  if (!names) return null;
  return (
    <>
      <section aria-label="Spend of the last day">
        <h2>Prompts of the last day</h2>
        <Shown from={found}>
          {({ sessions, sent, cut }) => {
            const sum = (of: (p: Sent) => number | undefined) => sent.reduce((all, p) => all + (of(p) ?? 0), 0);
            const [cost, other, tokens, cached] = [sum((p) => p.cost), sum((p) => p.appendOnlyCost), sum((p) => p.tokens), sum((p) => p.expectedCachedTokens)];
            const most = Math.max(cost, other, 1);
            const bar = (name: string, value: number, kind: string) => (
              <tr>
                <th scope="row">{name}</th>
                <td class="n">{count(Math.round(value))}</td>
                <td class="wide">
                  <Bar part={value} of={most} kind={kind} />
                </td>
              </tr>
            );
            return (
              <>
                <p class="figures">
                  <b>{count(sent.length)}</b> prompts of {count(sessions)} sessions, <b>{brief(tokens)}</b> tokens, {percent(cached, tokens)} of them from the cache
                </p>
                {sent.length > 0 && (
                  <table class="spend" aria-label="Billed like so many tokens of input">
                    <tbody>
                      {bar("billed like tokens of input", cost, "accent")}
                      {bar("with nothing folded", other, "plain")}
                    </tbody>
                  </table>
                )}
                {cut.slice(0, 3).map((c) => (
                  <p key={c} class="note">
                    {c}
                  </p>
                ))}
                {cut.length > 3 && <p class="note">{count(cut.length - 3)} more bounds like these.</p>}
              </>
            );
          }}
        </Shown>
      </section>
      {found.data && <Recent of={found.data.last} />}
    </>
  );
}

interface Info {
  sessionId: string;
  lastPosition?: string;
  updateTime?: string;
  closed?: boolean;
}

function Recent({ of }: { of: Spent["last"] }) {
  if (!of.length) return null;
  return (
    <section>
      <h2>Sessions, the last used first</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Sessions, the last used first">
        <table>
          <thead>
            <tr>
              <th>agent</th>
              <th>session</th>
              <th class="n">entries</th>
              <th>last used</th>
              <th>state</th>
            </tr>
          </thead>
          <tbody>
            {of.map((s) => (
              <tr key={s.agent + "/" + s.sessionId}>
                <td class="name">{s.agent}</td>
                <td>
                  <a class="name" href={to(["a", s.agent, "s", s.sessionId])}>
                    {s.sessionId}
                  </a>
                </td>
                <td class="n">{count(s.lastPosition)}</td>
                <td>
                  <Time at={s.updateTime} />
                </td>
                <td class="muted">{s.closed ? "closed" : "open"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
