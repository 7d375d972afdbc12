// What all rooms are made of.
import type { ComponentChildren, JSX } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Failure, type Loaded } from "./api";
import { ago, count, exactly, utc } from "./format";

/** A question that has to be answered before anything is changed. */
interface Question {
  title: string;
  what: ComponentChildren;
  yes: string;
  danger?: boolean;
  then: () => Promise<unknown>;
}

export const question = signal<Question | undefined>(undefined);
/** Whether this tab may change anything. */
export const editing = signal(false);

export function Time({ at }: { at: string | undefined }) {
  // Imported conversations whose file said no times have the beginning of 1970.
  if (!at || Date.parse(at) === 0) return <span class="muted">–</span>;
  // A browser is long in learning how a place writes dates, so that waits until somebody points there.
  return (
    <time dateTime={at} onPointerEnter={(e) => (e.currentTarget.title = exactly(at))}>
      {utc.value ? exactly(at) : ago(at)}
    </time>
  );
}

/** A screen with nothing in it: what will stand here, and the line that makes it so. */
export function Empty({ what, line }: { what: string; line: string }) {
  return (
    <div class="empty">
      <p>{what}</p>
      <Line text={line} />
    </div>
  );
}

/** A line for a shell or for Python, to be copied. */
export function Line({ text }: { text: string }) {
  const [copied, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text).then(() => set(true), () => {});
  };
  return (
    <div class="line">
      <pre tabIndex={0}>{text}</pre>
      <button onClick={copy}>{copied ? "copied" : "copy"}</button>
    </div>
  );
}

export function Trouble({ of }: { of: Failure }) {
  return (
    <p class="trouble" role="alert">
      {of.message}
      {of.reason && <code> {of.reason}</code>}
    </p>
  );
}

/** What was loaded, or why it was not. */
export function Shown<T>({ from, children }: { from: Loaded<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {from.error && from.error.status !== 401 && (
        <div class="again">
          <Trouble of={from.error} />
          <button onClick={from.reload}>try again</button>
        </div>
      )}
      {from.data !== undefined && children(from.data)}
      {from.loading && <p class="muted pad">…</p>}
    </>
  );
}

/** A share of something as a bar. */
export function Bar({ part, of, kind = "plain" }: { part: number; of: number; kind?: string }) {
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" width="100" height="8" />
      <rect class={"k-" + kind} width={of ? Math.min(100, (100 * part) / of) : 0} height="8" />
    </svg>
  );
}

const rowHeight = 30;

/** A list of which only the rows in sight are drawn. j and k move, enter opens. */
export function List<T>(props: {
  rows: T[];
  label: string;
  row: (item: T, index: number) => JSX.Element;
  open?: (item: T) => void;
  more?: (() => void) | undefined;
  chosen?: (item: T) => boolean;
}) {
  const { rows, row, open, more, chosen } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [at, setAt] = useState(-1);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => setHeight(box.current?.clientHeight ?? 600));
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / rowHeight) - 8);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + 8);
  useEffect(() => {
    if (more && last >= rows.length) more();
  }, [last, rows.length, more]);
  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setAt(next);
    const b = box.current!;
    if (next * rowHeight < b.scrollTop) b.scrollTop = next * rowHeight;
    if ((next + 1) * rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = (next + 1) * rowHeight - b.clientHeight;
  };
  const key = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "j" || e.key === "ArrowDown") move(at + 1);
    else if (e.key === "k" || e.key === "ArrowUp") move(at - 1);
    else if (e.key === "Enter" && e.target === box.current && rows[at] && open) open(rows[at]);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="list" ref={box} tabIndex={0} role="region" aria-label={props.label} onKeyDown={key} onScroll={() => setTop(box.current!.scrollTop)}>
      <div class="rows" style={{ height: rows.length * rowHeight + "px" }}>
        {rows.slice(first, last).map((item, i) => {
          const index = first + i;
          const mark = index === at ? " at" : chosen?.(item) ? " chosen" : "";
          return (
            <div key={index} class={"row" + mark} style={{ top: index * rowHeight + "px" }} onClick={open && (() => open(item))}>
              {row(item, index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Says that a list goes on beyond what is shown of it. */
export function More({ than, of, when }: { than: number; of: string; when: unknown }) {
  return when ? (
    <p class="note">
      There are more than these {count(than)} {of}: Ctrl K goes to any other by its name.
    </p>
  ) : null;
}

/** A JSON value as a tree that can be folded; what is folded is not drawn. */
export function Tree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const [open, set] = useState(depth < 2);
  const label = name === undefined ? "" : name + ": ";
  if (value === null || typeof value !== "object") {
    return (
      <div class="leaf">
        <span class="muted">{label}</span>
        {typeof value === "string" ? value : JSON.stringify(value)}
      </div>
    );
  }
  const entries = Object.entries(value);
  return (
    <details open={open} class="tree" onToggle={(e) => set(e.currentTarget.open)}>
      <summary>
        <span class="muted">{label}</span>
        {Array.isArray(value) ? `list of ${entries.length}` : `${entries.length} fields`}
      </summary>
      {open && entries.slice(0, 200).map(([k, v]) => <Tree key={k} value={v} name={k} depth={depth + 1} />)}
      {open && entries.length > 200 && <p class="muted">{entries.length - 200} more are not drawn</p>}
    </details>
  );
}

/** A text, of which a long one is shown in part until it is asked for. */
export function Text({ text, lines = 400 }: { text: string; lines?: number }) {
  const [all, set] = useState(false);
  const most = lines * 160;
  const cut = all ? text : text.slice(0, most).split("\n").slice(0, lines).join("\n");
  return (
    <>
      <pre class="text">{cut}</pre>
      {cut.length < text.length && <button onClick={() => set(true)}>show the other {count(text.length - cut.length)} characters</button>}
    </>
  );
}

/** Asks a question in front of everything, and does what was asked when the answer is yes. */
export function Asking() {
  const asked = question.value;
  const box = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    setProblem(undefined);
    if (asked) box.current?.showModal();
  }, [asked]);
  if (!asked) return null;
  const close = () => (question.value = undefined);
  const yes = () => {
    setBusy(true);
    asked.then().then(close, setProblem).finally(() => setBusy(false));
  };
  return (
    <dialog ref={box} onClose={close} aria-labelledby="asked">
      <h2 id="asked">{asked.title}</h2>
      <div class="asked">{asked.what}</div>
      {problem && <Trouble of={problem} />}
      <div class="buttons">
        <button class={asked.danger ? "danger" : "main"} disabled={busy} onClick={yes}>
          {asked.yes}
        </button>
        <button onClick={close}>leave it</button>
      </div>
    </dialog>
  );
}

/** A field that is applied with enter, or when it is left. */
export function Field(props: { label: string; value: string; placeholder?: string; apply: (value: string) => void; type?: "text" | "search" | "number" | "datetime-local" }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <input
        {...({ type: props.type ?? "text" } as { type: "text" })}
        value={props.value}
        placeholder={props.placeholder ?? ""}
        onChange={(e) => props.apply(e.currentTarget.value.trim())}
      />
    </label>
  );
}

export function Choice(props: { label: string; value: string; of: [string, string][]; apply: (value: string) => void }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select value={props.value} onChange={(e) => props.apply(e.currentTarget.value)}>
        {props.of.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
