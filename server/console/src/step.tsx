// A step in whole: its arguments, and every byte of its result.
import { useEffect, useState } from "preact/hooks";
import { at, type Call, Failure, listen, returns, useCall } from "./api";
import { bytes, words } from "./format";
import { Shown, Text, Time, Tree, Trouble } from "./parts";

export interface Step {
  id: string;
  toolName?: string;
  minimalArgs?: object;
  observation?: string;
  outcomeRef?: string;
  outcomePath?: string;
  createTime?: string;
  success?: boolean;
  outcome?: string;
  thought?: string;
  error?: string;
  inline?: string;
  sessionId?: string;
  resultForm?: string;
  refused?: boolean;
}

const most = 1 << 20;

/** The bytes that a name leads to, as far as a page shows them. */
function useBlob(agent: string, name: string | undefined, session?: string) {
  const [state, set] = useState<{ name?: string; size?: number; media?: string; data?: Uint8Array; error?: Failure }>({});
  const back = returns.value;
  useEffect(() => {
    if (!name) return;
    const ended = new AbortController();
    const call: Call = { method: "GET", path: at`/v1/blobs/${name}:read`, query: { agent_id: agent, limit: most, ...(session ? { session_id: session } : {}) } };
    const parts: Uint8Array[] = [];
    let info: { size?: string; mediaType?: string; kind?: string } = {};
    listen<{ info?: typeof info; data?: string }>(call, ended.signal, (m) => {
      info = m.info ?? info;
      if (m.data) parts.push(Uint8Array.from(atob(m.data), (c) => c.charCodeAt(0)));
    }).then(
      () => {
        const data = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
        parts.reduce((from, p) => (data.set(p, from), from + p.length), 0);
        set({ name, size: Number(info.size ?? data.length), media: info.mediaType || info.kind || "", data });
      },
      (error) => ended.signal.aborted || set({ name, error }),
    );
    return () => ended.abort();
  }, [agent, name, session, back]);
  return state.name === name ? state : {};
}

/** A text, a JSON value, or how many bytes of what. */
export function Blob({ agent, name, session }: { agent: string; name: string; session?: string }) {
  const { data, size, media, error } = useBlob(agent, name, session);
  if (error) return <Trouble of={error} />;
  if (!data) return <p class="muted">…</p>;
  if (/^(image|audio|binary)/.test(media ?? "") || data.slice(0, 4096).includes(0)) {
    return (
      <p>
        {bytes(size)} of {media}, which are not shown
      </p>
    );
  }
  const text = new TextDecoder().decode(data);
  let value: unknown;
  if (/^\s*[[{]/.test(text) && size === data.length) {
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined;
    }
  }
  return (
    <>
      <p class="muted">
        {bytes(size)}
        {size !== data.length && `, of which the first ${bytes(data.length)} are shown`}
      </p>
      {value !== undefined ? <Tree value={value} /> : <Text text={text} />}
    </>
  );
}

export function StepResult({ agent, id }: { agent: string; id: string }) {
  const step = useCall<Step>({ method: "GET", path: at`/v1/steps/${id}`, query: { agent_id: agent } });
  return (
    <Shown from={step}>
      {(s) => (
        <>
          <p>
            <code>{s.toolName}</code> <span class={s.success ? "muted" : "failed"}>{s.refused ? "refused" : words(s.outcome, "STEP_OUTCOME")}</span>{" "}
            <span class="muted">
              <Time at={s.createTime} />
            </span>
          </p>
          {s.thought && <p class="text muted">{s.thought}</p>}
          {s.minimalArgs && <Tree value={s.minimalArgs} name="arguments" />}
          {s.error && <p class="text failed">{s.error}</p>}
          {s.resultForm !== "RESULT_FORM_NONE" && (s.outcomeRef || (!s.inline && s.success)) ? <Blob agent={agent} name={id} /> : s.inline && <Text text={s.inline} />}
        </>
      )}
    </Shown>
  );
}

export function BlobPage({ agent, name }: { agent: string; name: string }) {
  return (
    <>
      <h1>
        Blob <span class="name">{name}</span>
      </h1>
      <Blob agent={agent} name={name} />
    </>
  );
}
