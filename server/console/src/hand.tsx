// Hand: calls of tools, and those that wait for a person.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { ask, at, type Call, curl, type Failure, useAll, useCall, usePages, useStream } from "./api";
import { count, lasting, words } from "./format";
import { Choice, editing, Empty, Field, List, question, Shown, Text, Time, Tree, Trouble } from "./parts";
import { query, set, to } from "./route";

interface Pending {
  id: string;
  agentId: string;
  sessionId?: string;
  tool?: string;
  capability?: { kind?: string; name?: string };
  argumentsJson?: string;
  expireTime?: string;
  parts?: { name: string; text?: string; sha256?: string; bytes?: string }[];
  digest?: string;
  rule?: string;
  alsoAllows?: string[];
}

export interface Audit {
  number: string;
  agentId?: string;
  sessionId?: string;
  callId?: string;
  tool?: string;
  argumentsJson?: string;
  profile?: string;
  approval?: string;
  outcome?: string;
  code?: string;
  createTime?: string;
  duration?: string;
  tier?: string;
  capability?: string;
  approvalNote?: string;
}

/** By which name this tab watches and answers. */
const me = signal("operator");

const nobody: Pending[] = [];

/** The calls that wait for a person, as they come. */
function usePending() {
  const who = me.value;
  const { state: waiting, problem } = useStream<{ pending?: Pending; closedId?: string }, Pending[]>(
    () => ({ method: "GET", path: "/v1/approvals:watch", query: { agent_id: who } }),
    [who],
    nobody,
    (old, fresh) => fresh.reduce((all, m) => all.filter((p) => p.id !== (m.pending?.id ?? m.closedId)).concat(m.pending ?? []), old),
  );
  return { waiting, problem };
}

/** The calls that wait, each with all that it would do, and what a person may say. */
export function Inbox() {
  const { waiting, problem } = usePending();
  return (
    <section aria-label="Calls that wait" class="inbox">
      <h2>
        {waiting.length ? `${waiting.length} ${waiting.length > 1 ? "calls wait" : "call waits"} for a person` : "No call waits for a person"}
      </h2>
      {problem && <Trouble of={problem} />}
      {!waiting.length && !problem && <p class="muted">While this page is open, calls that need a person wait for one. With no page and no other watcher they are refused at once.</p>}
      {waiting.map((p) => (
        <One key={p.id} call={p} />
      ))}
    </section>
  );
}

function One({ call }: { call: Pending }) {
  const [problem, setProblem] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  const [note, setNote] = useState("");
  const decide = (decision: string) => () => {
    setBusy(true);
    setProblem(undefined);
    ask({ method: "POST", path: at`/v1/approvals/${call.id}:decide`, body: { agent_id: me.value, decision: "APPROVAL_DECISION_" + decision, note } }).catch((err) => {
      setProblem(err);
      setBusy(false);
    });
  };
  return (
    <article class="waits" aria-label={`${call.tool} of ${call.agentId}`}>
      <p>
        <b class="mono">{call.tool}</b> of <span class="name">{call.agentId}</span>
        {call.sessionId && (
          <>
            {" "}
            in <a href={to(["a", call.agentId, "s", call.sessionId])}>{call.sessionId}</a>
          </>
        )}{" "}
        needs {call.capability?.kind} <span class="name">{call.capability?.name}</span>; it is refused <Time at={call.expireTime} />
      </p>
      <pre class="text exact">{call.argumentsJson}</pre>
      {(call.parts ?? []).map((p) => (
        <details key={p.name} open={Number(p.bytes ?? 0) < 2000}>
          <summary>
            {p.name} <span class="muted">{count(p.bytes)} bytes</span>
          </summary>
          <Text text={p.text ?? ""} lines={60} />
          <p class="muted id">SHA-256 {p.sha256}</p>
        </details>
      ))}
      <p class="muted">
        Yes for the session is kept as: <span class="text">{call.rule}</span>
        {call.alsoAllows?.length ? ". It would also allow:" : ""}
      </p>
      <ul class="muted">
        {(call.alsoAllows ?? []).map((a) => (
          <li key={a}>
            <code>{a}</code>
          </li>
        ))}
      </ul>
      {problem && <Trouble of={problem} />}
      {editing.value && <Field label="why; the model reads it after a no" value={note} apply={setNote} />}
      <div class="buttons">
        {editing.value ? (
          <>
            <button class="main" disabled={busy} onClick={decide("ONCE")}>
              yes, once
            </button>
            <button disabled={busy} onClick={decide("SESSION")}>
              yes, for the session
            </button>
            <button class="danger" disabled={busy} onClick={decide("DENY")}>
              no
            </button>
          </>
        ) : (
          <button class="main" onClick={() => (editing.value = true)}>
            unlock this tab to answer
          </button>
        )}
      </div>
    </article>
  );
}

interface Remembered {
  id: string;
  capability?: { kind?: string; name?: string };
  decision?: string;
  agentId?: string;
  sessionId?: string;
  approverId?: string;
  createTime?: string;
}

function Kept() {
  const kept = useAll<{ approvals?: Remembered[]; nextPageToken?: string }>({ method: "GET", path: "/v1/approvals", query: { agent_id: me.value, page_size: 1000 } }, 10, "approvals");
  const rows = kept.data?.approvals ?? [];
  if (!rows.length) return null;
  const revoke = (r: Remembered) =>
    (question.value = {
      title: "Take this answer back?",
      what: (
        <p>
          {r.capability?.kind} <code>{r.capability?.name}</code>: the next call that needs it asks a person again.
        </p>
      ),
      yes: "take it back",
      then: async () => {
        await ask({ method: "DELETE", path: at`/v1/approvals/${r.id}`, query: { agent_id: me.value } });
        kept.reload();
      },
    });
  return (
    <details class="next">
      <summary>{rows.length} answers are remembered</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Remembered answers">
        <table>
          <thead>
            <tr>
              <th>what</th>
              <th>for</th>
              <th>agent</th>
              <th>said by</th>
              <th>when</th>
              <th>change</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => (
              <tr key={r.id}>
                <td class="name">
                  {r.capability?.kind} {r.capability?.name}
                </td>
                <td>
                  {words(r.decision, "APPROVAL_DECISION")} {r.sessionId}
                </td>
                <td>{r.agentId}</td>
                <td>{r.approverId}</td>
                <td>
                  <Time at={r.createTime} />
                </td>
                <td>{editing.value ? <button onClick={() => revoke(r)}>take back</button> : <span class="muted">read only</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

const outcomes: [string, string][] = [["", "any"], ["OK", "ok"], ["FAILED", "failed"], ["DENIED", "denied"], ["REFUSED", "refused"], ["UNKNOWN", "unknown"], ["REPLAYED", "replayed"]];

export const good = (outcome: string | undefined) => outcome === "AUDIT_OUTCOME_OK" || outcome === "AUDIT_OUTCOME_REPLAYED";

export function Hand() {
  return (
    <>
      <h1>Hand: calls of tools</h1>
      <Inbox />
      <Kept />
      <Tools />
      <Calls />
    </>
  );
}

interface Page {
  records?: Audit[];
  nextPageToken?: string;
}

const pageOf = (page: Page) => page.records;
const numberOf = (r: Audit) => r.number;

/** The calls that were made, with when and how long on one axis. */
function Calls() {
  const given = query.value;
  const field = (name: string) => given.get(name) ?? "";
  const apply = (name: string) => (value: string) => set({ [name]: value || undefined }, true);
  const call: Call = {
    method: "GET", path: "/v1/audit",
    query: { agent_id: me.value, page_size: 200, tool: field("tool"), caller_id: field("agent"), outcome: field("outcome") && "AUDIT_OUTCOME_" + field("outcome") },
  };
  const calls = usePages(call, 3, pageOf, numberOf);
  return (
    <>
      <search class="filters">
        <Field label="tool" value={field("tool")} placeholder="fs:read_file" apply={apply("tool")} />
        <Field label="agent" value={field("agent")} placeholder="any" apply={apply("agent")} />
        <Choice label="outcome" value={field("outcome")} of={outcomes} apply={apply("outcome")} />
        <Field label="I answer as" value={me.value} apply={(value) => (me.value = value || "operator")} />
      </search>
      <Shown from={calls}>
        {(rows) =>
          rows.length ? (
            <Gantt rows={rows} more={calls.more} />
          ) : (
            <Empty
              what="Here stands each call of a tool: when, by whom, how long, and what came of it. None was made, or none passes the filter."
              line={curl({ method: "POST", path: "/v1/tools/fs:list_dir:call", body: { agent_id: "me", arguments: { path: "." } } })}
            />
          )
        }
      </Shown>
    </>
  );
}

function Gantt({ rows, more }: { rows: Audit[]; more: (() => void) | undefined }) {
  const chosen = query.value.get("call");
  const one = rows.find((r) => r.number === chosen);
  const begin = (r: Audit) => Date.parse(r.createTime ?? "");
  const seconds = (r: Audit) => Number.parseFloat(r.duration ?? "0");
  const from = rows.reduce((least, r) => Math.min(least, begin(r)), Infinity);
  const end = rows.reduce((most, r) => Math.max(most, begin(r) + 1000 * seconds(r)), 0);
  const span = Math.max(1, end - from);
  return (
    <>
      <p class="muted">
        The bars span {lasting(span / 1000 + "s")}, from <Time at={new Date(from).toISOString()} />.
      </p>
      <div class="split">
        <List
          label="Calls, the last first"
          rows={rows}
          more={more}
          chosen={(r) => r.number === chosen}
          open={(r) => set({ call: r.number })}
          row={(r) => (
            <>
              <span class="w5 n muted">
                <Time at={r.createTime} />
              </span>
              <span class="w5 cut name hide">{r.agentId}</span>
              <span class="w7 cut mono">{r.tool}</span>
              <span class="grow cut muted hide" title={r.argumentsJson}>{r.argumentsJson}</span>
              <span class={"w5 cut " + (good(r.outcome) ? "muted" : "failed")}>{words(r.outcome, "AUDIT_OUTCOME")}</span>
              <span class="w5 n">{lasting(r.duration)}</span>
              <span class="w6 hide">
                <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="ground" width="100" height="8" />
                  <rect class={good(r.outcome) ? "k-accent" : "k-failed"} x={Math.min(98.5, (100 * (begin(r) - from)) / span)} width={Math.max(1.5, (100000 * seconds(r)) / span)} height="8" />
                </svg>
              </span>
            </>
          )}
        />
        {one && (
          <aside aria-label="The call">
            <div class="head">
              <h2>
                call <span class="name">{one.number}</span>
              </h2>
              <button onClick={() => set({ call: undefined })}>close</button>
            </div>
            <dl class="facts one">
              {(
                [
                  ["tool", one.tool], ["agent", one.agentId], ["outcome", words(one.outcome, "AUDIT_OUTCOME")], ["code", one.code], ["took", lasting(one.duration)],
                  ["profile", one.profile], ["approval", one.approval], ["why", one.approvalNote], ["sandbox", one.tier], ["capability", one.capability], ["the model's id", one.callId],
                ] as [string, string | undefined][]
              )
                .filter(([, v]) => v)
                .map(([k, v]) => (
                  <div key={k}>
                    <dt>{k}</dt>
                    <dd>{v}</dd>
                  </div>
                ))}
            </dl>
            <Json text={one.argumentsJson ?? "{}"} />
            {one.agentId && (
              <p>
                <a href={to(["a", one.agentId, "s", one.sessionId || "default"])}>its session, with the whole result</a>
              </p>
            )}
          </aside>
        )}
      </div>
    </>
  );
}

function Json({ text }: { text: string }) {
  try {
    return <Tree value={JSON.parse(text)} name="arguments" />;
  } catch {
    return <Text text={text} />;
  }
}

interface Tool {
  name: string;
  description?: string;
  level?: number;
  category?: string;
  requiresApproval?: boolean;
  mutates?: boolean;
  agentId?: string;
  tokens?: number;
}

interface McpServer {
  definition?: { name?: string; command?: string; url?: string };
  state?: string;
  problem?: string;
  tools?: number;
  tokens?: number;
}

/** The tools that agents may call, and the servers that some of them come from. */
function Tools() {
  const [open, setOpen] = useState(false);
  const tools = useCall<{ tools?: Tool[] }>(open ? { method: "GET", path: "/v1/tools", query: { agent_id: me.value } } : undefined);
  const servers = useCall<{ servers?: McpServer[] }>(open ? { method: "GET", path: "/v1/mcpServers" } : undefined, 5);
  return (
    <details class="next" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>the tools that agents may call, and the MCP servers that give some of them</summary>
      <Shown from={servers}>
        {(data) =>
          data.servers?.map((s) => (
            <p key={s.definition?.name}>
              <b class="name">{s.definition?.name}</b> {words(s.state, "MCP_SERVER_STATE")}, {count(s.tools)} tools of {count(s.tokens)} tokens <span class="failed">{s.problem}</span>
            </p>
          ))
        }
      </Shown>
      <Shown from={tools}>
        {(data) => (
          <div class="scroll" tabIndex={0} role="region" aria-label="Tools">
            <table>
              <thead>
                <tr>
                  <th>tool</th>
                  <th class="n">level</th>
                  <th>of</th>
                  <th>marks</th>
                  <th>what it does</th>
                </tr>
              </thead>
              <tbody>
                {(data.tools ?? []).map((t) => (
                  <tr key={t.name}>
                    <td class="name">{t.name}</td>
                    <td class="n">{t.level}</td>
                    <td class="name">{t.agentId || t.category}</td>
                    <td>
                      {t.mutates && "changes something "}
                      {t.requiresApproval && "asks a person"}
                    </td>
                    <td>{(t.description ?? "").split("\n")[0]}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Shown>
    </details>
  );
}

/** The last calls, for the page of what goes on. */
export const lastCalls = (): Call => ({ method: "GET", path: "/v1/audit", query: { agent_id: me.value, page_size: 1000, start_time: new Date(Math.floor(Date.now() / 60_000) * 60_000 - 3600e3).toISOString() } });
