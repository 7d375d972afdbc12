// A prompt as it was sent: whose each part is, what changed, and what a folded line stands for.
import { useEffect, useState } from "preact/hooks";
import { at, type Call, useCall } from "./api";
import { byLines, compare, type Piece } from "./diff";
import { count, json, type Kind, sectionKind } from "./format";
import { Shown, Text, Tree } from "./parts";
import { go, query, set, to } from "./route";
import { promptsCall, Sections, SectionTable, type Sent } from "./sessions";
import { Blob, StepResult } from "./step";

export interface Answer {
  messages?: Message[];
  toolsJson?: string;
  promptJson?: string;
  format?: string;
  tokens?: { tokens?: number; counter?: string };
  parts?: Record<string, number>;
  cacheMarks?: { what?: string; messageIndex?: number; tokens?: number }[];
  receipt: { promptId?: string; policy?: string; layout?: string; sections?: Parameters<typeof SectionTable>[0]["of"] };
}

interface Message {
  role?: string;
  content?: string;
  blocksJson?: string;
  toolCalls?: { name: string; argumentsJson?: string }[];
}

interface Difference {
  fromPromptId?: string;
  difference?: { section?: string; byte?: string; messageIndex?: number };
  fromExcerpt?: string;
  toExcerpt?: string;
}

/** A message in every form alike. The index is that of cache marks. */
interface Said {
  index: number;
  role: string;
  text: string;
}

/** A stretch of a prompt, and the section that owns it. */
interface Part {
  section: string;
  kind: Kind;
  text: string;
}

export const asOf = (agent: string, session: string, prompt: string): Call => ({
  method: "POST", path: at`/v1/sessions/${session}/prompts`, body: { agent_id: agent, as_of_prompt_id: prompt },
});

/** What stands in content of any provider: its text, or its blocks as JSON. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : json(content, 1);
  return content.map((b) => (typeof b?.text === "string" ? b.text : json(b, 1))).join("\n");
}

export function saidIn(answer: Answer): Said[] {
  if (!answer.promptJson) {
    return (answer.messages ?? []).map((m, index) => {
      const calls = (m.toolCalls ?? []).map((c) => `→ ${c.name} ${c.argumentsJson ?? ""}`);
      return { index, role: (m.role ?? "").replace("ROLE_", "").toLowerCase(), text: [m.content || m.blocksJson, ...calls].filter(Boolean).join("\n") };
    });
  }
  // Providers have forms of their own, of which only the names that count here are known.
  const body = JSON.parse(answer.promptJson) as Record<string, any>;
  const system = body.system ?? body.instructions ?? body.systemInstruction?.parts;
  const list: Record<string, any>[] = body.messages ?? body.input ?? body.contents ?? [];
  return [
    ...(system ? [{ index: -2, role: "system", text: textOf(system) }] : []),
    ...list.map((m, index) => {
      const rest = m.tool_calls ? [json(m.tool_calls, 1)] : [];
      return { index, role: String(m.role ?? m.type ?? ""), text: [textOf(m.content ?? m.parts ?? (m.role ? undefined : m)), ...rest].filter(Boolean).join("\n") };
    }),
  ];
}

/** Cuts a message into the sections that it holds, by the tags that the server writes. */
function cut(text: string, rest: Kind, name: string): Part[] {
  const lines = text.split("\n");
  const out: Part[] = [];
  const put = (from: number, end: number, section: string, kind: Kind) => {
    const part = lines.slice(from, end).join("\n");
    if (part.trim()) out.push({ section, kind, text: part });
  };
  // Where the line is that closes what a line opens; a text may have very many of both.
  const closed = new Map<string, number>();
  const ends = new Map<number, number>();
  for (let i = lines.length - 1; i >= 0; i--) {
    const [, closes, tag] = /^<(\/?)([a-z_]+)>$/.exec(lines[i]!) ?? [];
    if (tag && closes) closed.set(tag, i);
    else if (tag && closed.has(tag)) ends.set(i, closed.get(tag)!);
  }
  let from = 0;
  for (let i = 0; i < lines.length; i++) {
    const goal = /^(Current Goal:|Goal:)/.test(lines[i]!);
    const end = goal ? lines.length - 1 : ends.get(i);
    if (end === undefined) continue;
    const section = goal ? "goal" : lines[i]!.slice(1, -1);
    put(from, i, name, rest);
    put(i, end + 1, section, sectionKind(section));
    i = end;
    from = end + 1;
  }
  put(from, lines.length, name, rest);
  return out;
}

const folded = /^\[(?:Earlier steps, folded|Folded as above)/;

/** The sections of each message, by where the cache marks lie. */
export function partsOf(said: Said[], answer: Answer): Map<Said, Part[]> {
  const mark = (what: string) => Math.max(-3, ...(answer.cacheMarks ?? []).filter((m) => m.what === what).map((m) => m.messageIndex ?? 0));
  const [stable, session, history] = [mark("stable"), mark("session"), mark("history")];
  const out = new Map<Said, Part[]>();
  for (const m of said) {
    const isSystem = m.index <= stable || m.role === "system" || m.role === "developer";
    if (isSystem && (history < 0 || m.index <= Math.max(stable, 0))) out.set(m, cut(m.text, "system", "system"));
    else if (m.index <= session) out.set(m, cut(m.text, "memory", "memory"));
    else if (folded.test(m.text)) out.set(m, [{ section: "folded", kind: "folded", text: m.text }]);
    else if (m.index <= history) out.set(m, [{ section: "history", kind: "shown", text: m.text }]);
    else out.set(m, cut(m.text, "shown", "history"));
  }
  return out;
}

export function Prompt({ agent, session, id }: { agent: string; session: string; id: string }) {
  const prompt = useCall<Answer>(asOf(agent, session, id));
  const list = useCall<{ prompts?: Sent[] }>(promptsCall(agent, session));
  const sent = list.data?.prompts ?? [];
  const place = sent.findIndex((p) => p.promptId === id);
  const before = sent[place - 1];
  const diff = query.value.get("diff");
  const other = useCall<Answer>(before || diff ? asOf(agent, session, diff || before!.promptId) : undefined);
  const where = useCall<Difference>(before || diff ? { method: "GET", path: at`/v1/sessions/${session}/prompts:diff`, query: { agent_id: agent, to_prompt_id: id, from_prompt_id: diff || before!.promptId } } : undefined);
  const address = (p: Sent | undefined) => p && to(["a", agent, "s", session, "p", p.promptId]);
  const turn = () => set({ diff: diff ? undefined : before?.promptId }, true);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as HTMLElement).tagName)) return;
      const next = e.key === "[" ? address(before) : e.key === "]" ? address(sent[place + 1]) : undefined;
      if (next) go(next);
      if (e.key === "d") turn();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  });
  const [raw, setRaw] = useState(false);
  return (
    <>
      <h1>
        Prompt {place >= 0 ? count(sent[place]!.number) : ""} of <a href={to(["a", agent, "s", session])}>{session}</a>
      </h1>
      <div class="buttons nav">
        <Move to={address(before)} text="[ before" />
        <Move to={address(sent[place + 1])} text="next ]" />
        {sent.length > 1 && (
          <label class="slider">
            <span class="sr">prompt</span>
            <input type="range" min={0} max={sent.length - 1} value={Math.max(place, 0)} onChange={(e) => go(address(sent[Number(e.currentTarget.value)])!)} />
          </label>
        )}
        <button aria-pressed={!!diff} disabled={!before && !diff} onClick={turn}>
          difference to the one before
        </button>
        <button aria-pressed={raw} onClick={() => setRaw(!raw)}>
          as JSON
        </button>
      </div>
      <Shown from={prompt}>
        {(answer) => (
          <>
            <p class="figures">
              <b>{count(answer.tokens?.tokens)}</b> tokens by {answer.tokens?.counter}, {answer.receipt.policy}, {(answer.receipt.layout ?? "").replace("PROMPT_LAYOUT_", "").toLowerCase().replace("_", " ")}
            </p>
            <Sections of={answer.parts ?? {}} />
            <Cache answer={answer} older={other.data} where={where.data} />
            {raw ? <Text text={answer.promptJson || JSON.stringify({ messages: answer.messages, tools: JSON.parse(answer.toolsJson || "[]") }, null, 1)} /> : <Whole agent={agent} session={session} answer={answer} older={diff ? other.data : undefined} />}
            {answer.receipt.sections && (
              <details class="next">
                <summary>the account of each section</summary>
                <div class="scroll" tabIndex={0} role="region" aria-label="Sections">
                  <SectionTable agent={agent} of={answer.receipt.sections} />
                </div>
              </details>
            )}
          </>
        )}
      </Shown>
    </>
  );
}

function Move({ to, text }: { to: string | undefined; text: string }) {
  return to ? (
    <a class="button" href={to}>
      {text}
    </a>
  ) : (
    <span class="button muted">{text}</span>
  );
}

/** Where the prompt first differs, and how much a provider reads from its cache. */
function Cache({ answer, older, where }: { answer: Answer; older: Answer | undefined; where: Difference | undefined }) {
  const first = where?.difference;
  if (!older || !where) return null;
  const same = !first?.section;
  const end = same ? Infinity : first.messageIndex ?? 0;
  const cached = Math.max(0, ...(older.cacheMarks ?? []).filter((m) => (m.messageIndex ?? 0) < end).map((m) => m.tokens ?? 0));
  const all = answer.tokens?.tokens ?? 0;
  return (
    <section class="first">
      <p>
        {same ? (
          "The same as the prompt before."
        ) : (
          <>
            First differs from the prompt before in <i class={"k-" + sectionKind(first.section!)} /> <b>{first.section}</b>, message {first.messageIndex ?? 0}, byte {count(first.byte)}.
          </>
        )}{" "}
        A provider that keeps the marks reads <b>{count(cached)}</b> of {count(all)} tokens from its cache.
      </p>
      {!same && (
        <p class="excerpt">
          <del>{where.fromExcerpt}</del>
          <br />
          <ins>{where.toExcerpt}</ins>
        </p>
      )}
    </section>
  );
}

function Whole({ agent, session, answer, older }: { agent: string; session: string; answer: Answer; older: Answer | undefined }) {
  const said = saidIn(answer);
  const parts = partsOf(said, answer);
  const marks = new Map((answer.cacheMarks ?? []).map((m) => [m.messageIndex ?? 0, m]));
  const find = query.value.get("find") ?? "";
  const one = (m: Said, kind: "same" | "new" | "gone" = "same", owner = parts.get(m) ?? []) => (
    <article key={kind + m.index} class={"message " + kind}>
      <div class="who muted">
        {m.index < 0 ? "" : m.index} {m.role}
      </div>
      <div class="what">
        {owner.map((p, i) => (
          <div key={i} class={"part p-" + p.kind} title={p.section}>
            <span class="section muted">{p.section}</span>
            {p.kind === "folded" ? <Folded agent={agent} session={session} text={p.text} find={find} /> : <Found text={p.text} find={find} />}
          </div>
        ))}
      </div>
      {marks.has(m.index) && kind !== "gone" && (
        <div class="cachemark">
          the cache keeps {count(marks.get(m.index)!.tokens)} tokens up to here ({marks.get(m.index)!.what})
        </div>
      )}
    </article>
  );
  const tools = JSON.parse(answer.toolsJson || (answer.promptJson && JSON.stringify(JSON.parse(answer.promptJson).tools ?? [])) || "[]");
  return (
    <section class="prompt" aria-label="The prompt">
      {tools.length > 0 && (
        <details class="part p-tools">
          <summary>{tools.length} tools</summary>
          <Tree value={tools} />
        </details>
      )}
      {older ? changed(saidIn(older), said).map(([kind, m, text], i) =>
        kind === "skipped" ? (
          <p key={i} class="muted skipped">
            {text} messages as before
          </p>
        ) : kind === "changed" ? (
          <article key={i} class="message">
            <div class="who muted">
              {m!.index} {m!.role}
            </div>
            <pre class="what part p-shown">
              {byLines(text!, m!.text).map(([k, t], j) => (k === "same" ? t : k === "new" ? <ins key={j}>{t}</ins> : <del key={j}>{t}</del>))}
            </pre>
          </article>
        ) : (
          one(m!, kind, kind === "gone" ? [{ section: "", kind: "shown", text: m!.text }] : parts.get(m!))
        ),
      ) : said.map((m) => one(m))}
    </section>
  );
}

/** What changed between two prompts: equal stretches in short, exchanged messages by line. */
function changed(a: Said[], b: Said[]): ["skipped" | "changed" | "same" | "new" | "gone", Said | undefined, string?][] {
  const name = (m: Said) => m.role + "\0" + m.text;
  const pieces: Piece[] = compare(a.map(name), b.map(name));
  const out: ReturnType<typeof changed> = [];
  let [i, j, equal] = [0, 0, 0];
  const skip = () => {
    if (equal) out.push(["skipped", undefined, String(equal)]);
    equal = 0;
  };
  for (let k = 0; k < pieces.length; k++) {
    const kind = pieces[k]![0];
    if (kind === "same") {
      equal++;
      i++;
      j++;
      continue;
    }
    skip();
    if (kind === "gone" && pieces[k + 1]?.[0] === "new" && a[i]!.role === b[j]!.role) {
      out.push(["changed", b[j++]!, a[i++]!.text]);
      k++;
    } else if (kind === "gone") out.push(["gone", a[i++]!]);
    else out.push(["new", b[j++]!]);
  }
  skip();
  return out;
}

function Found({ text, find }: { text: string; find: string }) {
  if (!find || !text.includes(find)) return <Text text={text} lines={60} />;
  return (
    <pre class="text">
      {text.split(find).map((piece, i) => (
        <span key={i}>
          {i > 0 && <mark>{find}</mark>}
          {piece}
        </span>
      ))}
    </pre>
  );
}

/** A fold: each of its lines opens what it stands for, in place. */
function Folded({ agent, session, text, find }: { agent: string; session: string; text: string; find: string }) {
  return (
    <div class="folds">
      {text.split("\n").map((line, i) => {
        const step = /^(\d{3,})(?:–(\d{3,}))?[: ]/.exec(line);
        const message = /^m(\d+)[: ]/.exec(line);
        return <FoldedLine key={i} agent={agent} session={session} line={line} from={step ? Number(step[1]) : 0} to={step ? Number(step[2] ?? step[1]) : 0} message={message?.[1]} find={find} />;
      })}
    </div>
  );
}

function FoldedLine(props: { agent: string; session: string; line: string; from: number; to: number; message: string | undefined; find: string }) {
  const [open, set] = useState(false);
  const named = props.from > 0 || props.message;
  if (!named) return <Found text={props.line} find={props.find} />;
  const steps = Array.from({ length: Math.min(props.to - props.from + 1, 50) }, (_, i) => `step_${String(props.from + i).padStart(3, "0")}`);
  return (
    <>
      <div class="foldline">
        <button aria-expanded={open} onClick={() => set(!open)}>
          {open ? "fold" : "open"}
        </button>
        <Found text={props.line} find={props.find} />
      </div>
      {open && (
        <div class="original">
          {props.from > 0 ? (
            steps.map((id) => (
              <section key={id}>
                <h3>{id}</h3>
                <StepResult agent={props.agent} id={id} />
              </section>
            ))
          ) : (
            <Blob agent={props.agent} name={`message_${props.message!.padStart(3, "0")}`} session={props.session} />
          )}
        </div>
      )}
    </>
  );
}
