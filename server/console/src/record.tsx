// The page of a record: what it says, how it came to, and what it belongs to.
import { useState } from "preact/hooks";
import { ask, at, type Call, useCall } from "./api";
import { byWords } from "./diff";
import { words } from "./format";
import { editing, Field, question, Shown, Time, Tree } from "./parts";
import { go, query, set, to } from "./route";
import { Grants, owner, ownerQuery, type Rec } from "./memory";

interface Relation {
  fromId: string;
  name: string;
  toId: string;
}

export function RecordPage({ agent, id }: { agent: string; id: string }) {
  const whose = owner(agent);
  const record = useCall<Rec>({ method: "GET", path: "/v1/memories:get", query: { ...whose, id, peek: true } });
  const versions = useCall<{ records?: Rec[] }>({ method: "GET", path: at`/v1/memories/${id}/versions`, query: { ...whose, peek: true, page_size: 100 } });
  const relations = useCall<{ relations?: Relation[] }>({ method: "GET", path: "/v1/relations", query: { ...whose, id, page_size: 100 } });
  return (
    <>
      <h1>
        Record <span class="name">{record.data?.key || id}</span>
      </h1>
      <Shown from={record}>
        {(r) => (
          <>
            <Versions now={r} all={versions.data?.records ?? []} />
            {editing.value && <Change agent={agent} record={r} done={() => [record, versions].forEach((l) => l.reload())} />}
            <search class="filters">
              <Field label="does a query find it, and if not, why?" value="" placeholder="what is asked" type="search" apply={(q) => q && go(to(["a", agent, "m"], { ...ownerQuery(), q, why: id }))} />
            </search>
            <Facts agent={agent} of={r} />
            <Readers agent={agent} />
            <Relations agent={agent} of={r} all={relations.data?.relations ?? []} />
          </>
        )}
      </Shown>
    </>
  );
}

function Versions({ now, all }: { now: Rec; all: Rec[] }) {
  const given = query.value.get("v");
  const sorted = [...all].sort((a, b) => Number(a.version) - Number(b.version));
  const seen = sorted.find((v) => v.version === given) ?? now;
  const before = sorted.find((v) => Number(v.version) === Number(seen.version) - 1);
  const show = (v: Rec) => set({ v: v.version === now.version ? undefined : v.version });
  return (
    <section>
      {before ? (
        <p class="record text" aria-describedby="compared">
          {byWords(before.text ?? "", seen.text ?? "").map(([kind, text], i) => (kind === "same" ? text : kind === "new" ? <ins key={i}>{text}</ins> : <del key={i}>{text}</del>))}
        </p>
      ) : (
        <p class="record text">{seen.text}</p>
      )}
      {before && (
        <p class="muted" id="compared">
          {before.text === seen.text ? `The text is that of version ${before.version}.` : `Struck out is what version ${before.version} said, underlined what is new.`}
        </p>
      )}
      {sorted.length > 1 && (
        <label class="slider asof">
          <span>
            as it was <Time at={seen.updateTime ?? seen.createTime} />
          </span>
          <input type="range" min={0} max={sorted.length - 1} value={sorted.findIndex((v) => v.version === seen.version)} onInput={(e) => show(sorted[Number(e.currentTarget.value)]!)} />
        </label>
      )}
      {sorted.length > 1 && (
        <ol class="life" aria-label="Versions">
          {sorted.map((v) => (
            <li key={v.version} class={v.version === seen.version ? "at" : ""}>
              <button aria-pressed={v.version === seen.version} onClick={() => show(v)}>
                version {v.version}
              </button>
              <span class="muted">
                <Time at={v.updateTime ?? v.createTime} /> {v.writer || v.author || v.agentId}
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function Facts({ agent, of }: { agent: string; of: Rec }) {
  const link = (id: string) => (
    <a key={id} class="id" href={to(["a", agent, "m", id], ownerQuery())}>
      {id}
    </a>
  );
  const rows: [string, unknown][] = [
    ["id", of.id], ["key", of.key], ["kind", of.kind], ["origin", words(of.origin, "ORIGIN")], ["review", words(of.review, "REVIEW")],
    ["session", of.sessionId && <a href={to(["a", agent, "s", of.sessionId])}>{of.sessionId}</a>],
    ["author", of.author], ["written by", of.writer], ["saved by", of.agentId], ["tags", of.tags?.join(", ")],
    ["importance", of.importance?.toFixed(2)], ["pinned", of.pinned && "yes: every prompt shows it"], ["archived", of.archived && <Time at={of.archiveTime} />],
    ["said again", Number(of.repeats) > 0 && `${of.repeats} times`],
    ["saved", of.createTime && <Time at={of.createTime} />], ["changed", of.updateTime && <Time at={of.updateTime} />],
    ["happened", of.eventTime && <Time at={of.eventTime} />], ["valid until", of.validUntil && <Time at={of.validUntil} />], ["expires", of.expireTime && <Time at={of.expireTime} />],
    ["replaces", of.supersedes && link(of.supersedes)], ["replaced by", of.supersededBy && link(of.supersededBy)],
    ["made of", of.derivedFrom?.length ? of.derivedFrom.map(link) : undefined],
    ["import", of.importId], ["metadata", of.metadata && Object.keys(of.metadata).length > 0 && <Tree value={of.metadata} />],
  ];
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value as string}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Who may read the memory that a record is in. */
function Readers({ agent }: { agent: string }) {
  const { user, space } = ownerQuery();
  return (
    <section aria-label="Who may read it">
      <h2>Who may read it</h2>
      {user || space ? (
        <Grants agent={agent} of={user ? { user_id: user } : { space_id: space! }} />
      ) : (
        <p>
          <span class="name">{agent}</span>, whose own memory it is in, and who may act for that agent.
        </p>
      )}
    </section>
  );
}

/** What stands of a record beside its relation, in characters. */
const labelled = 32;

/** The records one relation away with their texts, those that lead here on the left. */
function Relations({ agent, of, all }: { agent: string; of: Rec; all: Relation[] }) {
  const come = all.filter((r) => r.toId === of.id).slice(0, 12);
  const leave = all.filter((r) => r.fromId === of.id && r.toId !== of.id).slice(0, 12);
  const ids = [...new Set([...come.map((r) => r.fromId), ...leave.map((r) => r.toId)])];
  const filter = ids.map((id) => `id = ${JSON.stringify(id)}`).join(" OR ");
  const others = useCall<{ records?: Rec[] }>(ids.length ? { method: "GET", path: "/v1/memories", query: { ...owner(agent), filter, peek: true, page_size: ids.length } } : undefined);
  const texts = new Map(others.data?.records?.map((r) => [r.id, r.text]));
  if (!all.length) return null;
  const height = 34 * Math.max(come.length, leave.length, 1) + 10;
  const node = (r: Relation, i: number, other: string, left: boolean) => {
    const y = ((i + 0.5) * height) / (left ? come.length : leave.length);
    const [from, end] = left ? [230, 330] : [470, 570];
    const [y1, y2] = left ? [y, height / 2] : [height / 2, y];
    return (
      <g key={r.name + other}>
        <path d={`M${from} ${y1}C${(from + end) / 2} ${y1} ${(from + end) / 2} ${y2} ${end} ${y2}`} class="edge" marker-end="url(#arrow)" />
        <text x={left ? 280 : 520} y={(y1 + y2) / 2 - 4} text-anchor="middle" class="muted">
          {r.name}
        </text>
        <a href={to(["a", agent, "m", other], ownerQuery())}>
          <text x={left ? 226 : 576} y={y + 4} text-anchor={left ? "end" : "start"}>
            <title>{texts.get(other) ?? other}</title>
            {short(texts.get(other) || other)}
          </text>
        </a>
      </g>
    );
  };
  return (
    <section>
      <h2>Relations</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Relations">
        <svg class="graph" viewBox={`0 0 800 ${height}`} width="800" height={height} role="group" aria-label={`${come.length} relations lead here, ${leave.length} lead away`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0 8 4 0 8z" class="edgehead" />
            </marker>
          </defs>
          {come.map((r, i) => node(r, i, r.fromId, true))}
          {leave.map((r, i) => node(r, i, r.toId, false))}
          <text x="400" y={height / 2 + 4} text-anchor="middle" class="strong">
            this record
          </text>
        </svg>
      </div>
      {all.length > come.length + leave.length && <p class="muted">{all.length - come.length - leave.length} more are not drawn.</p>}
    </section>
  );
}

const short = (text: string) => {
  const all = [...text.slice(0, 2 * labelled + 2)];
  return all.length > labelled ? all.slice(0, labelled - 1).join("") + "…" : all.join("");
};

/** Changes of a record, each of which says first what it will do. */
function Change({ agent, record, done }: { agent: string; record: Rec; done: () => void }) {
  const [text, setText] = useState(record.text ?? "");
  const whose = owner(agent);
  const update = (change: object): Call => ({ method: "PATCH", path: "/v1/memories:update", body: { ...whose, id: record.id, ...change } });
  const make = (call: Call) => async () => {
    await ask(call);
    done();
  };
  const save = { record: { text }, update_mask: "text", expected_version: record.version };
  const correct = () =>
    (question.value = {
      title: "Correct this record?",
      what: (
        <p class="text">
          {byWords(record.text ?? "", text).map(([kind, t], i) => (kind === "same" ? t : kind === "new" ? <ins key={i}>{t}</ins> : <del key={i}>{t}</del>))}
        </p>
      ),
      yes: "correct it", then: make(update(save)),
    });
  const pin = () =>
    (question.value = {
      title: record.pinned ? "Unpin this record?" : "Pin this record?",
      what: <p>{record.pinned ? "Prompts show it only where it fits what is asked." : "Every prompt of its agent will show it, as far as there is room."} The same button takes it back.</p>,
      yes: record.pinned ? "unpin it" : "pin it", then: make(update({ record: { pinned: !record.pinned }, update_mask: "pinned" })),
    });
  const archive = () =>
    (question.value = {
      title: record.archived ? "Take this record out of the archive?" : "Put this record into the archive?",
      what: <p>{record.archived ? "Queries will find it again." : "No query finds it there that does not ask for the archive."} The same button takes it back.</p>,
      yes: record.archived ? "take it out" : "archive it", then: make(update({ archived: !record.archived })),
    });
  const remove = () =>
    (question.value = {
      title: "Delete this record?",
      what: (
        <>
          <p class="text">{record.text}</p>
          <p>It goes with all its versions and relations. This can't be undone; a backup still has it.</p>
        </>
      ),
      yes: "delete it", danger: true,
      then: async () => {
        await ask({ method: "DELETE", path: at`/v1/memories/${record.id}`, query: { ...whose, expected_version: record.version } });
        go(to(["a", agent, "m"], ownerQuery()));
      },
    });
  return (
    <section class="change" aria-label="Change">
      <label class="field">
        <span>text</span>
        <textarea rows={3} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <div class="buttons">
        <button class="main" disabled={text === record.text || !text} onClick={correct}>
          correct
        </button>
        <button onClick={pin}>{record.pinned ? "unpin" : "pin"}</button>
        <button onClick={archive}>{record.archived ? "take out of the archive" : "archive"}</button>
        <button class="danger" onClick={remove}>
          delete
        </button>
      </div>
    </section>
  );
}
