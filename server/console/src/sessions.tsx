// Sessions: what was said and done, and every prompt that was sent.
import { useEffect, useState } from "preact/hooks";
import { Behind } from "./answer";
import { ask, at, type Call, curl, useAll, useCall, usePages } from "./api";
import { brief, count, kinds, later, percent, plural, sectionKind, words } from "./format";
import { Choice, editing, Empty, Field, List, More, question, Shown, Time } from "./parts";
import { go, query, set, to } from "./route";
import { StepResult, type Step } from "./step";

export interface Sent {
  promptId: string;
  number: string;
  lastPosition?: string;
  model?: string;
  tokens?: number;
  parts?: Record<string, number>;
  createTime?: string;
  expectedCachedTokens?: number;
  cost?: number;
  appendOnlyCost?: number;
  foldBatch?: string;
  renewals?: number;
  undonePosition?: string;
  places?: { section: string; messageIndex?: number; ref?: string; batch?: string }[];
}

interface Child {
  childId: string;
  sessionId?: string;
  spawnTime?: string;
  fork?: boolean;
}

interface Found {
  prompts?: Sent[];
  origins?: { ref: string; position?: string; source?: string; part?: string }[];
  unread?: string[];
  losses?: { promptId: string; number: string; section?: string; cause?: string; reason?: string; batch?: { number?: string; reason?: string; refs?: string[]; beforeTokens?: number; afterTokens?: number } }[];
}

/** The call that lists the prompts of a session, and where a text stands in them. */
export const promptsCall = (agent: string, session: string, text = ""): Call => ({ method: "GET", path: at`/v1/sessions/${session}/prompts`, query: { agent_id: agent, text } });

interface Info {
  sessionId: string;
  lastPosition?: string;
  beginTime?: string;
  updateTime?: string;
  ended?: boolean;
  closed?: boolean;
}

export function Sessions({ agent }: { agent: string }) {
  const found = useAll<{ sessions?: Info[]; nextPageToken?: string }>({ method: "GET", path: "/v1/sessions", query: { agent_id: agent, page_size: 1000, include_closed: true } }, 5, "sessions");
  return (
    <>
      <h1>
        Sessions of <span class="name">{agent}</span>
      </h1>
      <Shown from={found}>
        {(data) => {
          const rows = [...(data.sessions ?? [])].sort((a, b) => later(a.updateTime, b.updateTime));
          if (!rows.length) {
            const line = curl({ method: "POST", path: "/v1/sessions/s1/messages", body: { agent_id: agent, messages: [{ role: "ROLE_USER", content: "Hello" }] } });
            return <Empty what="Here stand the sessions of this agent: what was said and done, and its prompts. It has none yet; this line begins one." line={line} />;
          }
          const address = (s: Info) => to(["a", agent, "s", s.sessionId]);
          return (
            <>
              <More than={rows.length} of="sessions" when={data.nextPageToken} />
              <List
                label="Sessions, the last used first"
                rows={rows}
                open={(s) => go(address(s))}
                row={(s) => (
                  <>
                    <a class="grow cut name" href={address(s)} onClick={(e) => e.stopPropagation()}>
                      {s.sessionId}
                    </a>
                    <span class="w7 n">
                      {count(s.lastPosition)} {plural(Number(s.lastPosition ?? 0), "entry", "entries")}
                    </span>
                    <span class="w5 muted hide">{s.ended ? "ended" : s.closed ? "closed" : "open"}</span>
                    <span class="w5 n muted">
                      <Time at={s.updateTime} />
                    </span>
                  </>
                )}
              />
            </>
          );
        }}
      </Shown>
    </>
  );
}

export function Session({ agent, session }: { agent: string; session: string }) {
  const text = query.value.get("find") ?? "";
  const prompts = useCall<Found>(promptsCall(agent, session, text), text ? 0 : 5);
  const [chosen, choose] = useState<number>();
  const sent = prompts.data?.prompts ?? [];
  const seen = sent.find((p) => Number(p.number) === chosen);
  return (
    <>
      <h1>
        Session <span class="name">{session}</span> of <span class="name">{agent}</span>
      </h1>
      <Shown from={prompts}>
        {() =>
          sent.length ? (
            <>
              <Stack agent={agent} session={session} sent={sent} chosen={chosen} choose={choose} />
              <search class="filters">
                <Field label="where is this text, and what took it out?" value={text} placeholder="a name, a number, a line" type="search" apply={(value) => set({ find: value || undefined }, true)} />
              </search>
              {text && prompts.data && <Blame agent={agent} session={session} text={text} found={prompts.data} />}
            </>
          ) : (
            <Empty
              what="Here stand the prompts of this session, by section. It has sent none yet; this line makes one."
              line={curl({ method: "POST", path: at`/v1/sessions/${session}/prompts`, body: { agent_id: agent } })}
            />
          )
        }
      </Shown>
      <Next agent={agent} session={session} />
      <Conversation agent={agent} session={session} sent={sent} until={seen ? Number(seen.lastPosition ?? 0) : Infinity} />
    </>
  );
}

/** The tokens of each prompt by section. A click opens the prompt. */
function Stack(props: { agent: string; session: string; sent: Sent[]; chosen: number | undefined; choose: (n: number) => void }) {
  const { sent, chosen, choose } = props;
  const most = Math.max(...sent.map((p) => p.tokens ?? 0), 1);
  const height = 150;
  const strip = 22; // above the columns, for marks
  const width = Math.max(2, Math.min(28, 1000 / sent.length));
  const last = sent.at(-1)!;
  const seen = sent.find((p) => Number(p.number) === chosen) ?? last;
  const address = (p: Sent) => to(["a", props.agent, "s", props.session, "p", p.promptId]);
  const before = sent[sent.indexOf(seen) - 1];
  const first = Number(sent[0]!.number);
  const folds = sent.filter((p) => Number(p.foldBatch) > 0).length;
  const renewed = (i: number) => i > 0 && (sent[i]!.renewals ?? 0) > (sent[i - 1]!.renewals ?? 0);
  const undone = (i: number) => i > 0 && Number(sent[i]!.undonePosition ?? 0) > Number(sent[i - 1]!.undonePosition ?? 0);
  const undos = sent.filter((_, i) => undone(i)).length;
  const renewals = sent.filter((_, i) => renewed(i)).length;
  const spawned = useCall<{ children?: Child[] }>({ method: "GET", path: "/v1/children:wait", query: { agent_id: props.agent, session_id: props.session } }, 10).data?.children ?? [];
  const forks = spawned.filter((c) => c.fork).length;
  /** The children that were spawned behind a prompt and before the next one. */
  const behind = new Map<number, Child[]>();
  for (const child of spawned) {
    const i = Math.max(0, sent.findLastIndex((p) => Date.parse(p.createTime ?? "") <= Date.parse(child.spawnTime ?? "")));
    behind.set(i, [...(behind.get(i) ?? []), child]);
  }
  return (
    <section class="stack">
      <p class="figures">
        <b>{count(last.number)}</b> prompts{first > 1 && `, of which ${count(sent.length)} are kept`}; the last takes <b>{count(last.tokens)}</b> tokens, the largest <b>{count(most)}</b>
        {sent.some((p) => p.cost) && <Billed of={sent} />}
      </p>
      <div class="chart">
        <div class="axis muted" aria-hidden="true">
          <span>{brief(most)}</span>
          <span>{brief(Math.round(most / 2))}</span>
          <span>0</span>
        </div>
        <svg viewBox={`0 ${-strip} ${sent.length * width} ${height + strip}`} width={sent.length * width} height={height + strip} preserveAspectRatio="none" role="img" aria-label={`Tokens of ${sent.length} prompts by section`}>
          <defs>
            <pattern id="cached" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect class="cached" width="2" height="4" />
            </pattern>
          </defs>
          {sent.map((p, i) => {
            let y = height;
            const cached = (height * (p.expectedCachedTokens ?? 0)) / most;
            return (
              <g key={p.promptId} class={p === seen ? "column at" : p.places?.length ? "column has" : "column"} onClick={() => go(address(p))}>
                <title>{`prompt ${p.number}: ${count(p.tokens)} tokens, ${count(p.expectedCachedTokens)} from the cache; ` + (Number(p.foldBatch) > 0 ? `batch ${p.foldBatch} was folded for it; ` : "") + (undone(i) ? "folds were undone before it; " : "") + (behind.get(i) ?? []).map((c) => `${c.fork ? "fork" : "child"} ${c.childId} was spawned behind it; `).join("") + parts(p).map(([k, n]) => `${k} ${count(n)}`).join(", ")}</title>
                <rect x={i * width} width={width} y={-strip} height={height + strip} class="hit" />
                {parts(p).map(([kind, tokens]) => {
                  const h = (height * tokens) / most;
                  y -= h;
                  return <rect key={kind} class={"k-" + kind} x={i * width + width * 0.08} width={width * 0.84} y={y} height={h} />;
                })}
                <rect fill="url(#cached)" x={i * width + width * 0.08} width={width * 0.84} y={height - cached} height={cached} />
                {renewed(i) && <path class="renewed" d={`M${i * width} ${-strip}v${height + strip}`} />}
                {Number(p.foldBatch) > 0 && <path class="foldmark" d={`M${i * width + width / 2} -13l-4 -7h8z`} />}
                {undone(i) && <path class="undomark" d={`M${i * width + width / 2} -20l-4 7h8z`} />}
                {behind.has(i) && <circle class={behind.get(i)!.some((c) => c.fork) ? "forkmark" : "childmark"} cx={i * width + width / 2} cy={-8} r={3} />}
                {p.places?.length ? <rect class="mark" x={i * width} width={width} y={-3} height={3} /> : null}
              </g>
            );
          })}
        </svg>
      </div>
      <p class="legend">
        <span>
          <i class="hatched" /> from the provider's cache, as far as it keeps the marks
        </span>
        <span>
          <i class="notch" /> <b>{count(folds)}</b> {plural(folds, "batch", "batches")} of folds
        </span>
        <span>
          <i class="dashed" /> <b>{count(renewals)}</b> {plural(renewals, "renewal")} of the window
        </span>
        {undos > 0 && (
          <span>
            <i class="unnotch" /> <b>{count(undos)}</b> {plural(undos, "undo", "undos")} of folds
          </span>
        )}
        {spawned.length > 0 && (
          <span>
            <i class="dot" /> <b>{count(spawned.length)}</b> {plural(spawned.length, "child", "children")}
            {forks > 0 && (
              <>
                , of which <i class="dot filled" /> <b>{count(forks)}</b> {plural(forks, "fork")}
              </>
            )}
            :
            {spawned.slice(0, 12).map((c) => (
              <a key={c.childId} class="id" href={to(["a", c.childId, "s", c.sessionId || "default"])}>
                {c.childId}
              </a>
            ))}
            {spawned.length > 12 && "…"}
          </span>
        )}
      </p>
      <label class="slider" style={{ width: Math.max(260, sent.length * width + 44) + "px" }}>
        <span>
          prompt <b>{count(seen.number)}</b>: {count(seen.tokens)} tokens, {count(seen.expectedCachedTokens)} of them from the cache, <Time at={seen.createTime} />, the log up to {count(seen.lastPosition)}
        </span>
        <input type="range" min={first} max={last.number} value={seen.number} onInput={(e) => choose(Number(e.currentTarget.value))} />
      </label>
      <Sections of={seen.parts ?? {}} />
      <p>
        <a href={address(seen)}>open prompt {count(seen.number)}</a>
        {before && (
          <>
            , or <a href={to(["a", props.agent, "s", props.session, "p", seen.promptId], { diff: before.promptId })}>what it has dropped</a> of prompt {count(before.number)}
            {Number(seen.foldBatch) > 0 && `, for which batch ${seen.foldBatch} was folded`}
          </>
        )}
      </p>
      <Unfold agent={props.agent} session={props.session} folded={folds > 0} />
    </section>
  );
}

/** Takes the last batch of folds back. */
function Unfold({ agent, session, folded }: { agent: string; session: string; folded: boolean }) {
  const [done, setDone] = useState("");
  const undo = () =>
    (question.value = {
      title: "Take the last batch of folds back?",
      what: <p>What it folded stands in the next prompt as it was before, which costs its tokens again. A prompt that would not fit its budget is folded anew.</p>,
      yes: "take it back",
      then: async () => {
        const { refs = [] } = await ask<{ refs?: string[] }>({ method: "POST", path: at`/v1/sessions/${session}:undo`, body: { agent_id: agent } });
        setDone(`Back from the next prompt on: ${refs.slice(0, 12).join(", ")}${refs.length > 12 ? ` and ${refs.length - 12} more` : ""}.`);
      },
    });
  return (
    <p role="status">
      {editing.value ? <button onClick={undo}>take the last folds back</button> : folded && <span class="muted">A folded line opens in its prompt; with editing on (e), the last folds can be taken back.</span>} {done}
    </p>
  );
}

/** What prompts are billed, in units of one input token, and what they would be with nothing folded. */
export function Billed({ of }: { of: Sent[] }) {
  const sum = (figure: (p: Sent) => number | undefined) => of.reduce((all, p) => all + (figure(p) ?? 0), 0);
  const [cost, other, tokens] = [sum((p) => p.cost), sum((p) => p.appendOnlyCost), sum((p) => p.tokens)];
  const each = kinds.map((k) => [k, sum((p) => Object.fromEntries(parts(p))[k])] as const).filter(([, n]) => n > 0);
  return (
    <>
      ; all together are billed like <b>{count(Math.round(cost))}</b> tokens of input, with nothing folded like <b>{count(Math.round(other))}</b>. Of the <b>{count(tokens)}</b> tokens that were sent, {percent(sum((p) => p.expectedCachedTokens), tokens)} came from the cache;{" "}
      {each.map(([k, n]) => `${k} ${percent(n, tokens)}`).join(", ")}
    </>
  );
}

function parts(p: Sent): [string, number][] {
  const sums = Object.fromEntries(kinds.map((k) => [k, 0])) as Record<string, number>;
  for (const [name, tokens] of Object.entries(p.parts ?? {})) sums[sectionKind(name.split(":")[0]!)]! += tokens;
  return Object.entries(sums).filter(([, n]) => n > 0);
}

/** The sections of a prompt with their tokens. */
export function Sections({ of }: { of: Record<string, number> }) {
  const order = (name: string) => kinds.indexOf(sectionKind(name.split(":")[0]!));
  return (
    <p class="legend">
      {Object.entries(of)
        .filter(([, tokens]) => tokens > 0)
        .sort(([a], [b]) => order(a) - order(b))
        .map(([name, tokens]) => (
          <span key={name}>
            <i class={"k-" + sectionKind(name.split(":")[0]!)} /> {name} <b>{count(tokens)}</b>
          </span>
        ))}
    </p>
  );
}

/** Where a text came from, where it stood, and what took it out. */
function Blame({ agent, session, text, found }: { agent: string; session: string; text: string; found: Found }) {
  const having = (found.prompts ?? []).filter((p) => p.places?.length);
  const prompt = (id: string, number: string) => <a href={to(["a", agent, "s", session, "p", id], { find: text })}>prompt {number}</a>;
  const remembered = [...new Set(having.flatMap((p) => p.places!.map((at) => at.section)))].filter((name) => sectionKind(name.split(":")[0]!) === "memory");
  return (
    <section class="blame" aria-label="Where the text stood">
      <p>
        {having.length ? (
          <>
            It stands in {having.length} prompts, first in {prompt(having[0]!.promptId, having[0]!.number)}, last in {prompt(having.at(-1)!.promptId, having.at(-1)!.number)}: in{" "}
            {[...new Set(having.flatMap((p) => p.places!.map((at) => at.section)))].join(", ")}.
          </>
        ) : (
          "No prompt that is kept has shown it."
        )}
      </p>
      <ul>
        {(found.origins ?? []).map((o, i) => (
          <li key={i}>
            It comes from the {o.part} of <a href={place(agent, session, o.ref, o.position)}>{o.ref}</a>, of {o.source}.
          </li>
        ))}
        {remembered.length > 0 && (
          <li>
            What stands in {remembered.join(", ")} comes from records: <a href={to(["a", agent, "m"], { q: text })}>search the memory of {agent} for it</a>.
          </li>
        )}
        {(found.losses ?? []).map((l, i) => (
          <li key={i}>
            {prompt(l.promptId, l.number)} shows it no longer{l.section && ` in ${l.section}`}: {words(l.cause, "LOSS_CAUSE")}
            {l.batch && ` ${l.batch.number} of ${l.batch.refs?.join(", ")}, by ${words(l.batch.reason, "FOLD_REASON")}, ${count(l.batch.beforeTokens)} tokens into ${count(l.batch.afterTokens)}`}
            {l.reason && `; ${l.reason}`}.
          </li>
        ))}
      </ul>
      {!!found.unread?.length && <p class="trouble">What is damaged was passed over: {found.unread.join(", ")}.</p>}
      {!found.origins?.length && !remembered.length && <p class="muted">No message and no step of this session has it, as far as prompts show them.</p>}
    </section>
  );
}

const place = (agent: string, session: string, ref: string, position?: string) =>
  ref.startsWith("step_") ? to(["a", agent, "s", session], { step: ref }) : to(["a", agent, "s", session], { entry: position });

interface Receipt {
  cost?: number;
  appendOnlyCost?: number;
  pressure?: number;
  calls?: string;
  faults?: string;
  sections?: { name: string; tokens?: number; beforeTokens?: number; maxTokens?: number; outcome?: string; reason?: string; refs?: string[]; leftOut?: string[]; source?: string }[];
}

/** What the next prompt would be, without making it, and what it would be under other rules. */
function Next({ agent, session }: { agent: string; session: string }) {
  const [open, setOpen] = useState(false);
  const [preset, setPreset] = useState("");
  const [budget, setBudget] = useState("");
  const other = {
    ...(budget ? { max_tokens: Number(budget) } : {}),
    ...(preset === "append" ? { history: { policy: "HISTORY_POLICY_APPEND_ONLY" } } : preset ? { history: { policy: "HISTORY_POLICY_PRESET", preset } } : {}),
  };
  return (
    <details class="next" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>the next prompt, as it would be now: what stands in it, what is left out, what it costs</summary>
      {open && (
        <>
          <div class="filters">
            <Choice label="what if the history were" value={preset} of={presets} apply={setPreset} />
            <Field label="or the budget" value={budget} placeholder="tokens" type="number" apply={setBudget} />
          </div>
          <div class="beside">
            <Account agent={agent} session={session} title="as it is" change={{}} />
            {(preset || budget) && <Account agent={agent} session={session} title="what if" change={other} />}
          </div>
        </>
      )}
    </details>
  );
}

const presets = [["", "as it is"], ["append", "never folded"], ...["design", "reduction", "chat", "research", "code", "debug", "task_context", "partitioned", "three_phase"].map((p) => [p, p])] as [string, string][];

/** A dry run: nothing is stored by it. */
function Account({ agent, session, title, change }: { agent: string; session: string; title: string; change: object }) {
  const dry = useCall<{ tokens?: { tokens?: number }; receipt: Receipt }>({ method: "POST", path: at`/v1/sessions/${session}/prompts`, body: { agent_id: agent, dry_run: true, ...change } });
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <Shown from={dry}>
        {({ tokens, receipt }) => (
          <>
            <p class="figures">
              <b>{count(tokens?.tokens)}</b> tokens, {Math.round(100 * (receipt.pressure ?? 0))} % of the budget; billed like <b>{count(Math.round(receipt.cost ?? 0))}</b> tokens of input, with nothing folded{" "}
              <b>{count(Math.round(receipt.appendOnlyCost ?? 0))}</b>; {count(receipt.faults)} of {count(receipt.calls)} calls asked again for what was folded
            </p>
            <div class="scroll" tabIndex={0} role="region" aria-label={"Sections " + title}>
              <SectionTable agent={agent} of={receipt.sections ?? []} />
            </div>
          </>
        )}
      </Shown>
    </section>
  );
}

/** The account of each section. */
export function SectionTable({ agent, of }: { agent: string; of: NonNullable<Receipt["sections"]> }) {
  return (
    <table>
      <thead>
        <tr>
          <th>section</th>
          <th class="n">tokens</th>
          <th class="n">without cap</th>
          <th class="n">cap</th>
          <th>outcome</th>
          <th>shows, and leaves out</th>
        </tr>
      </thead>
      <tbody>
        {of.map((s) => (
          <tr key={s.name}>
            <td>
              <i class={"k-" + sectionKind(s.name.split(":")[0]!)} /> {s.name}
            </td>
            <td class="n">{count(s.tokens)}</td>
            <td class="n">{count(s.beforeTokens)}</td>
            <td class="n">{s.maxTokens ? count(s.maxTokens) : "–"}</td>
            <td>{words(s.outcome, "SECTION_OUTCOME")}</td>
            <td>
              {s.reason} {s.source && <span class="muted">from {s.source} </span>}
              <Refs agent={agent} label="shown" of={s.refs ?? []} />
              <Refs agent={agent} label="left out" of={s.leftOut ?? []} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Refs({ agent, label, of }: { agent: string; label: string; of: string[] }) {
  if (!of.length) return null;
  return (
    <details class={label === "left out" ? "failed" : ""}>
      <summary>
        {of.length} {label}
      </summary>
      {of.map((ref) => (/^[0-9A-Z]{26}$/.test(ref) ? <a key={ref} class="id" href={to(["a", agent, "m", ref])}>{ref}</a> : <span key={ref} class="id">{ref}</span>))}
    </details>
  );
}

interface Entry {
  position?: string;
  createTime?: string;
  message?: { role?: string; content?: string; blocksJson?: string; name?: string; toolCalls?: { name: string; argumentsJson?: string }[] };
  step?: Step;
  task?: { taskId: string; action: string; result?: string };
  foldBatch?: string;
}

interface Page {
  entries?: Entry[];
  nextPageToken?: string;
}

const said = (e: Entry): string =>
  e.message ? e.message.content || e.message.blocksJson || (e.message.toolCalls ?? []).map((c) => `${c.name} ${c.argumentsJson}`).join(" ") : e.step ? e.step.observation ?? "" : `${e.task?.action} ${e.task?.result ?? ""}`;

const who = (e: Entry): string => (e.message ? e.message.name || words(e.message.role, "ROLE") : e.step ? e.step.toolName ?? "" : "task");

const pageOf = (page: Page) => page.entries;
const nameOf = (e: Entry) => e.position + (e.task ? ` ${e.task.action} ${e.task.taskId}` : "");

/** What was said and done, the newest first; a row opens in whole beside the list. */
function Conversation({ agent, session, sent, until }: { agent: string; session: string; sent: Sent[]; until: number }) {
  const call: Call = { method: "GET", path: at`/v1/sessions/${session}/conversation`, query: { agent_id: agent, order: "CONVERSATION_ORDER_NEWEST_FIRST", page_size: 200 } };
  const entries = usePages(call, 5, pageOf, nameOf);
  const [step, entry] = [query.value.get("step"), query.value.get("entry")];
  const rows = entries.data ?? [];
  const chosen = rows.find((e) => (step ? e.step?.id === step : entry ? e.position === entry && !e.task : false));
  return (
    <Shown from={entries}>
      {() => (
        <div class="split">
          <List
            label="What was said and done, the newest first"
            rows={rows}
            more={entries.more}
            chosen={(e) => e === chosen}
            open={(e) => set(e.step ? { step: e.step.id, entry: undefined } : { entry: e.position, step: undefined })}
            row={(e) => (
              <span class={"entry" + (Number(e.position) > until ? " later" : "")}>
                <span class="n w4 muted">{e.position}</span>
                <span class={"w7 cut " + (e.step ? "mono" : "muted")}>{who(e)}</span>
                <span class={"grow cut" + (e.step && !e.step.success ? " failed" : "")}>{said(e)}</span>
                {Number(e.foldBatch) > 0 && (
                  <span class="muted hide" title="the batch of folds by which prompts show it">
                    fold {e.foldBatch}
                  </span>
                )}
                <span class="w5 n muted hide">
                  <Time at={e.createTime} />
                </span>
              </span>
            )}
          />
          {(step || entry) && (
            <aside aria-label="The entry">
              <div class="head">
                <h2>{step ?? `entry ${entry}`}</h2>
                <button onClick={() => set({ step: undefined, entry: undefined })}>close</button>
              </div>
              {step ? <StepResult key={step} agent={agent} id={step} /> : chosen && <p class="text">{said(chosen)}</p>}
              {chosen?.message?.role === "ROLE_ASSISTANT" && <Behind key={chosen.position} agent={agent} session={session} position={Number(chosen.position)} text={said(chosen)} sent={sent} />}
            </aside>
          )}
        </div>
      )}
    </Shown>
  );
}

/** A step by its id alone: goes to its session. */
export function StepPage({ agent, id }: { agent: string; id: string }) {
  const step = useCall<Step>({ method: "GET", path: at`/v1/steps/${id}`, query: { agent_id: agent } });
  const session = step.data?.sessionId;
  useEffect(() => {
    if (session) go(to(["a", agent, "s", session], { step: id }));
  }, [session]);
  return (
    <>
      <h1>
        Step <span class="name">{id}</span>
      </h1>
      <Shown from={step}>{() => null}</Shown>
    </>
  );
}
