// Memory: what is found, why, and why something else is not.
import { useEffect, useState } from "preact/hooks";
import { ask, type Call, curl, Failure, useAll, useCall, usePages } from "./api";
import { brief, count, words } from "./format";
import { Choice, Empty, Field, List, Shown, Time, Trouble } from "./parts";
import { go, query, set, to } from "./route";

export interface Rec {
  id: string;
  text?: string;
  key?: string;
  kind?: string;
  sessionId?: string;
  author?: string;
  agentId?: string;
  createTime?: string;
  updateTime?: string;
  eventTime?: string;
  expireTime?: string;
  validUntil?: string;
  archiveTime?: string;
  tags?: string[];
  metadata?: object;
  importance?: number;
  supersedes?: string;
  supersededBy?: string;
  derivedFrom?: string[];
  origin?: string;
  tier?: number;
  version?: string;
  pinned?: boolean;
  archived?: boolean;
  review?: string;
  writer?: string;
  repeats?: string;
  importId?: string;
}

interface Signal {
  name: string;
  raw?: number;
  share?: number;
}

interface Hit {
  record: Rec;
  score?: number;
  explanation?: { signals?: Signal[]; matchedWords?: string[] };
  olderIds?: string[];
  passages?: { text: string }[];
  through?: { hitId: string; name: string };
}

interface Receipt {
  leftOut?: Record<string, number>;
  records?: string;
  degraded?: string[];
  tokens?: number;
  emptyReason?: string;
  embeddingSpaces?: string[];
}

interface Found {
  hits?: Hit[];
  receipt: Receipt;
}

/** The parts of a score, in the order of every bar. */
const parts = ["words", "meaning", "neighbours", "time", "weight"] as const;
const partOf: Record<string, (typeof parts)[number]> = {
  turn: "words", answer: "words", question: "words", reply: "words", brevity: "words", several: "words",
  vector: "meaning", window: "neighbours", session: "neighbours",
  date: "time", recency: "time", newer: "time", now: "time",
};

function Signals({ of }: { of: Signal[] }) {
  const shares = Object.fromEntries(parts.map((p) => [p, 0])) as Record<string, number>;
  for (const s of of) shares[partOf[s.name] ?? "weight"]! += Math.max(0, s.share ?? 0);
  let x = 0;
  const title = parts.filter((p) => shares[p]! > 0).map((p) => `${p} ${Math.round(100 * shares[p]!)} %`).join(", ");
  return (
    <svg class="bar signals" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={title || "no signals"}>
      <title>{title}</title>
      <rect class="ground" width="100" height="8" />
      {parts.map((p) => {
        const width = 100 * shares[p]!;
        x += width;
        return width > 0 && <rect key={p} class={"s-" + p} x={x - width} width={width} height="8" />;
      })}
    </svg>
  );
}

/** Why candidates are no hits, in the order in which the server looks. */
const reasons: [string, string][] = [
  ["filtered", "did not pass the filter"],
  ["expired", "had expired"],
  ["superseded", "were replaced by another record"],
  ["archived", "lie in the archive"],
  ["under_min_score", "scored too low"],
  ["over_limit", "were over the limit"],
  ["over_max_tokens", "were over the tokens"],
  ["over_max_bytes", "were over the bytes of an answer"],
];

function Waterfall({ found }: { found: Found }) {
  const left = found.receipt.leftOut ?? {};
  const hits = (found.hits ?? []).filter((h) => !h.through).length;
  const all = hits + reasons.reduce((sum, [name]) => sum + (left[name] ?? 0), 0);
  let rest = all;
  const steps: [string, number, number, string][] = [["candidates", 0, all, "have something of the query"]];
  for (const [name, why] of reasons) {
    const gone = left[name] ?? 0;
    if (!gone) continue;
    rest -= gone;
    steps.push([name.replaceAll("_", " "), rest, gone, why]);
  }
  steps.push(["shown", 0, hits, "are the hits"]);
  return (
    <table class="waterfall" aria-label="From candidates to hits">
      <tbody>
        {steps.map(([name, from, size, why]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="n">
              {name === "candidates" || name === "shown" ? "" : "−"}
              {count(size)}
            </td>
            <td class="wide">
              <svg viewBox="0 0 100 8" preserveAspectRatio="none" class="bar" aria-hidden="true">
                <rect class={name === "shown" ? "k-accent" : name === "candidates" ? "k-plain" : "k-lost"} x={all ? (100 * from) / all : 0} width={all ? Math.max((100 * size) / all, size ? 0.5 : 0) : 0} height="8" />
              </svg>
            </td>
            <td class="muted">{why}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The memory that the address means, as fields of a call. */
export function owner(agent: string): { agent_id: string; user_id?: string; space_id?: string } {
  const user = query.value.get("user");
  const space = query.value.get("space");
  return { agent_id: agent, ...(user ? { user_id: user } : space ? { space_id: space } : {}) };
}

export function ownerQuery(): Record<string, string | undefined> {
  return { user: query.value.get("user") ?? undefined, space: query.value.get("space") ?? undefined };
}

export function Memory({ agent }: { agent: string }) {
  const given = query.value;
  const q = given.get("q") ?? "";
  const title = given.get("user") ?? given.get("space") ?? agent;
  return (
    <>
      <h1>
        Memory of {given.get("user") ? "the person " : given.get("space") ? "the space " : ""}
        <span class="name">{title}</span>
      </h1>
      <Search />
      <Spaces agent={agent} />
      {q ? <Hits agent={agent} q={q} /> : <All agent={agent} />}
    </>
  );
}

interface Space {
  spaceId: string;
  access?: string;
  createTime?: string;
}

interface Grant {
  grantee: string;
  access?: string;
  grantedBy?: string;
  grantTime?: string;
}

/** The spaces that an agent has access to, and who else has. */
function Spaces({ agent }: { agent: string }) {
  const found = useAll<{ spaces?: Space[]; nextPageToken?: string }>({ method: "GET", path: "/v1/spaces", query: { agent_id: agent, page_size: 1000 } }, 10, "spaces");
  const user = query.value.get("user");
  const spaces = found.data?.spaces ?? [];
  if (!spaces.length && !user) return null;
  return (
    <details class="next">
      <summary>
        {user ? "who may use this person's memory, and " : ""}
        {count(spaces.length)} spaces that this agent may use, and who else may
      </summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Spaces">
        <table>
          <thead>
            <tr>
              <th>memory</th>
              <th>this agent may</th>
              <th>made</th>
              <th>agents, and what they may</th>
            </tr>
          </thead>
          <tbody>
            {user && (
              <tr>
                <td class="name">{user}</td>
                <td />
                <td />
                <td>
                  <Grants agent={agent} of={{ user_id: user }} />
                </td>
              </tr>
            )}
            {spaces.map((s) => (
              <tr key={s.spaceId}>
                <td>
                  <a class="name" href={to(["a", agent, "m"], { space: s.spaceId })}>
                    {s.spaceId}
                  </a>
                </td>
                <td>{words(s.access, "ACCESS")}</td>
                <td>
                  <Time at={s.createTime} />
                </td>
                <td>{s.access === "ACCESS_ADMIN" ? <Grants agent={agent} of={{ space_id: s.spaceId }} /> : <span class="muted">its administrators see that</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Who was let into a memory, as far as this agent may see that. */
export function Grants({ agent, of }: { agent: string; of: Record<string, string> }) {
  const found = useAll<{ grants?: Grant[]; nextPageToken?: string }>({ method: "GET", path: "/v1/grants", query: { agent_id: agent, page_size: 1000, ...of } }, 10, "grants");
  if (found.error?.reason === "ACCESS_DENIED") return <span class="muted">its administrators see that</span>;
  return (
    <Shown from={found}>
      {(data) =>
        data.grants?.length ? (
          data.grants.map((g) => (
            <div key={g.grantee}>
              <span class="name">{g.grantee}</span> {words(g.access, "ACCESS")}{" "}
              <span class="muted">
                by {g.grantedBy} <Time at={g.grantTime} />
              </span>
            </div>
          ))
        ) : (
          <span class="muted">nobody by a grant</span>
        )
      }
    </Shown>
  );
}

function Search() {
  const given = query.value;
  const field = (name: string) => given.get(name) ?? "";
  const apply = (name: string) => (value: string) => set({ [name]: value || undefined, sel: undefined }, true);
  return (
    <search class="filters">
      <Field label="words" value={field("q")} placeholder="what to look for" type="search" apply={apply("q")} />
      <Field label="filter" value={field("filter")} placeholder={'kind = "fact" AND tags:"market"'} apply={apply("filter")} />
      <Field label="as of" value={field("asof")} type="datetime-local" apply={apply("asof")} />
      {field("q") && (
        <>
          <Choice label="mode" value={field("mode")} of={[["", "hybrid"], ["LEXICAL", "words"], ["VECTOR", "meaning"]]} apply={apply("mode")} />
          <Field label="limit" value={field("limit")} placeholder="10" type="number" apply={apply("limit")} />
          <Field label="least score" value={field("min")} placeholder="0" type="number" apply={apply("min")} />
          <Field label="most tokens" value={field("tokens")} placeholder="no bound" type="number" apply={apply("tokens")} />
          <Choice label="archive" value={field("archived")} of={[["", "without"], ["1", "with"]]} apply={apply("archived")} />
        </>
      )}
    </search>
  );
}

const moment = (text: string | null) => (text && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString() : undefined);

function queryCall(agent: string, q: string): Call {
  const given = query.value;
  const number = (name: string) => (given.get(name) ? Number(given.get(name)) : undefined);
  const body = {
    ...owner(agent), query: q, explain: true, peek: true, limit: number("limit") ?? 10, filter: given.get("filter") ?? undefined,
    mode: given.get("mode") ? "QUERY_MODE_" + given.get("mode") : undefined, min_score: number("min"), max_tokens: number("tokens"),
    include_archived: given.get("archived") ? true : undefined, as_of: moment(given.get("asof")),
  };
  return { method: "POST", path: "/v1/memories:query", body };
}

function Hits({ agent, q }: { agent: string; q: string }) {
  const call = queryCall(agent, q);
  const found = useCall<Found>(call);
  const chosen = query.value.get("sel");
  return (
    <Shown from={found}>
      {(data) => {
        const hits = data.hits ?? [];
        const hit = hits.find((h) => h.record.id === chosen);
        return (
          <>
            <Waterfall found={data} />
            {data.receipt.degraded?.map((d) => <p key={d} class="note">done without: {d}</p>)}
            {!hits.length && <p class="note">Nothing is found: {(data.receipt.emptyReason ?? "").replace("EMPTY_REASON_", "").toLowerCase().replaceAll("_", " ")}.</p>}
            <Legend />
            <div class="split">
              <List
                label="Hits"
                rows={hits}
                chosen={(h) => h.record.id === chosen}
                open={(h) => set({ sel: h.record.id })}
                row={(h, i) => (
                  <>
                    <span class="n w2 muted">{i + 1}</span>
                    <span class="n w3">{(h.score ?? 0).toFixed(2)}</span>
                    <span class="w6">
                      <Signals of={h.explanation?.signals ?? []} />
                    </span>
                    <a class="grow cut" href={to(["a", agent, "m", h.record.id], ownerQuery())} onClick={(e) => e.stopPropagation()}>
                      {h.record.text || h.passages?.map((p) => p.text).join(" … ")}
                    </a>
                    <span class="w5 muted cut hide">{h.through ? `through ${h.through.name}` : h.record.kind}</span>
                    <span class="w5 n muted hide">
                      <Time at={h.record.createTime} />
                    </span>
                  </>
                )}
              />
              {hit && <Details agent={agent} hit={hit} />}
            </div>
            <WhyNot agent={agent} call={call} found={data} />
          </>
        );
      }}
    </Shown>
  );
}

function Legend() {
  return (
    <p class="legend">
      {parts.map((p) => (
        <span key={p}>
          <i class={"s-" + p} /> {p}
        </span>
      ))}
    </p>
  );
}

function Details({ agent, hit }: { agent: string; hit: Hit }) {
  return (
    <aside aria-label="The hit">
      <div class="head">
        <h2>Score {(hit.score ?? 0).toFixed(3)}</h2>
        <button onClick={() => set({ sel: undefined })}>close</button>
      </div>
      <p class="text">{hit.record.text}</p>
      <table>
        <thead>
          <tr>
            <th>signal</th>
            <th class="n">value</th>
            <th class="n">share</th>
          </tr>
        </thead>
        <tbody>
          {(hit.explanation?.signals ?? []).map((s) => (
            <tr key={s.name}>
              <td>
                <i class={"s-" + (partOf[s.name] ?? "weight")} /> {s.name}
              </td>
              <td class="n">{(s.raw ?? 0).toFixed(3)}</td>
              <td class="n">{(100 * (s.share ?? 0)).toFixed(1).replace("-", "\u2212")} %</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        <span class="muted">words of the query in it: </span>
        {hit.explanation?.matchedWords?.join(", ") || "none; what stands around it has them"}
      </p>
      {hit.olderIds?.length ? (
        <p>
          <span class="muted">states the same as these, which are older: </span>
          {hit.olderIds.map((id) => (
            <a key={id} class="id" href={to(["a", agent, "m", id], ownerQuery())}>
              {id}
            </a>
          ))}
        </p>
      ) : null}
      <p>
        <a href={to(["a", agent, "m", hit.record.id], ownerQuery())}>the record with its versions and relations</a>
      </p>
    </aside>
  );
}

/** Says why a record is not among the hits, by asking for it alone. */
function WhyNot({ agent, call, found }: { agent: string; call: Call; found: Found }) {
  const [answer, setAnswer] = useState("");
  const [problem, setProblem] = useState<Failure>();
  const asked = query.value.get("why") ?? "";
  const why = async (name: string) => {
    if (!name) return "";
    const id = /^[0-9A-Z]{26}$/.test(name) ? name : await named(name);
    if (!id) return "No record of this memory has this key or this text.";
    const place = (found.hits ?? []).findIndex((h) => h.record.id === id);
    if (place >= 0) return `It is there: hit ${place + 1}.`;
    let record: Rec;
    try {
      record = await ask<Rec>({ method: "GET", path: "/v1/memories:get", query: { ...owner(agent), id, peek: true } });
    } catch (err) {
      if (err instanceof Failure && err.status === 404) return "This memory has no such record: it was never saved here, has expired, or was deleted.";
      throw err;
    }
    if (record.supersededBy) return `It was replaced by ${record.supersededBy}.`;
    if (record.archived && !query.value.get("archived")) return "It lies in the archive; search with the archive to find it.";
    if (record.review === "REVIEW_HELD" || record.review === "REVIEW_REJECTED") return "A person has not approved it, so queries do not find it.";
    const body = call.body as { filter?: string; limit: number; min_score?: number };
    const only = async (filter: string) => (await ask<Found>({ ...call, body: { ...body, min_score: undefined, max_tokens: undefined, limit: 1, filter } })).hits?.[0];
    const alone = `id = ${JSON.stringify(id)}`;
    const hit = await only(alone);
    if (!hit) return "It has nothing of the query: no word, and no meaning that is near enough.";
    if (body.filter && !(await only(`(${body.filter}) AND ${alone}`))) return `It does not pass the filter ${body.filter}.`;
    const score = hit.score ?? 0;
    if (score < (body.min_score ?? 0)) return `It scores ${score.toFixed(3)}, which is under ${body.min_score}.`;
    const last = found.hits?.at(-1)?.score ?? 0;
    return `It is a candidate. Asked for alone it scores ${score.toFixed(3)}; the last hit has ${last.toFixed(3)}, and ${body.limit} hits or the tokens were the bound.`;
  };
  /** The id of the record that has a key, or else whose text has some words. */
  const named = async (name: string) => {
    const has = JSON.stringify(name);
    for (const filter of [`key = ${has}`, `text = ${has}`, `text:${has}`]) {
      const list = await ask<Page>({ method: "GET", path: "/v1/memories", query: { ...owner(agent), filter, peek: true, page_size: 1 } });
      if (list.records?.[0]) return list.records[0].id;
    }
    return "";
  };
  useEffect(() => {
    let past = false; // something else was asked meanwhile, and its answer may have come before
    setProblem(undefined);
    why(asked).then(
      (said) => past || setAnswer(said),
      (err) => past || setProblem(err),
    );
    return () => void (past = true);
  }, [asked, found]);
  return (
    <section class="whynot">
      <Field label="why is this record not there?" value={asked} placeholder="a record's id, its key, or words of its text" apply={(value) => set({ why: value || undefined })} />
      {problem && <Trouble of={problem} />}
      <p role="status">{answer}</p>
    </section>
  );
}

interface Page {
  records?: Rec[];
  nextPageToken?: string;
}

function All({ agent }: { agent: string }) {
  const given = query.value;
  const call: Call = {
    method: "GET", path: "/v1/memories",
    query: { ...owner(agent), newest_first: true, peek: true, page_size: 200, filter: given.get("filter") ?? undefined, as_of: moment(given.get("asof")) },
  };
  const records = usePages(call, 0, pageOf, nameOf);
  const stats = useCall<{ stats: { records?: string; archived?: string; pending?: string; embedderSpace?: string } }>({
    method: "GET", path: "/v1/memories", query: { ...owner(agent), stats_only: true },
  });
  return (
    <>
      {stats.data && (
        <p class="figures">
          <b>{count(stats.data.stats.records)}</b> records, <b>{count(stats.data.stats.archived)}</b> of them in the archive, <b>{count(stats.data.stats.pending)}</b> wait for a vector
          {stats.data.stats.embedderSpace ? ` of ${stats.data.stats.embedderSpace}` : "; no embedder"}
        </p>
      )}
      <Shown from={records}>
        {(rows) =>
          rows.length ? (
            <Pages agent={agent} rows={rows} more={records.more} />
          ) : (
            <Empty
              what="Here stand the records of this memory. None is there, or none passes the filter."
              line={curl({ method: "POST", path: "/v1/memories", body: { ...owner(agent), text: "Bitcoin closed at 45,000" } })}
            />
          )
        }
      </Shown>
    </>
  );
}

const pageOf = (page: Page) => page.records;
const nameOf = (r: Rec) => r.id;

function Pages({ agent, rows, more }: { agent: string; rows: Rec[]; more: (() => void) | undefined }) {
  const address = (r: Rec) => to(["a", agent, "m", r.id], ownerQuery());
  return (
    <List
      label="Records, the newest first"
      rows={rows}
      more={more}
      open={(r) => go(address(r))}
      row={(r) => (
        <>
          <span class="w5 n muted">
            <Time at={r.createTime} />
          </span>
          <span class="w5 muted cut hide">{r.kind}</span>
          <a class="grow cut" href={address(r)} onClick={(e) => e.stopPropagation()}>
            {r.text}
          </a>
          <span class="marks muted cut">
            {r.pinned && "pinned "}
            {r.archived && "archived "}
            {r.supersededBy && "replaced "}
            {Number(r.version) > 1 && `version ${r.version} `}
            {r.tags?.join(" ")}
          </span>
          <span class="w4 n muted" title="importance">
            {brief(Math.round(100 * (r.importance ?? 0))) + " %"}
          </span>
        </>
      )}
    />
  );
}
