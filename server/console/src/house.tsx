// House: whether the server is well, what fills it, and its copies.
import { useState } from "preact/hooks";
import { askText, type Call, Failure, listen, useAll, useCall } from "./api";
import { bytes, count, lasting, now } from "./format";
import { agent } from "./route";
import { Bar, editing, Line, question, Shown, Time, Trouble } from "./parts";
import { type Status, statusCall, troubles } from "./now";

interface Scope {
  owner: { agentId?: string; userId?: string; spaceId?: string };
  records?: string;
  archived?: string;
  bytes?: string;
}

interface Backup {
  name: string;
  createTime?: string;
  bytes?: string;
  newBytes?: string;
}

export function House() {
  const status = useCall<Status>(statusCall, 5);
  return (
    <>
      <h1>House</h1>
      <Shown from={status}>
        {(s) => (
          <>
            {troubles(s).map((t) => (
              <p key={t} class="trouble" role="alert">
                {t}
              </p>
            ))}
            <Facts of={s} />
          </>
        )}
      </Shown>
      <Latencies />
      <Backups />
      <Disk />
      <Blobs />
      <Settings />
    </>
  );
}

function Facts({ of }: { of: Status }) {
  const sums = (map: Record<string, string> | undefined) =>
    Object.entries(map ?? {})
      .map(([name, n]) => `${name} ${count(n)}`)
      .join(", ");
  const rows: [string, unknown][] = [
    ["version", of.version],
    ["running", of.startTime && lasting((Math.max(now.value, Date.now()) - Date.parse(of.startTime)) / 1000 + "s")],
    ["durability", of.durability],
    ["store", of.store?.writable === false ? "takes no writes" : `takes writes, format ${of.storeFormat}`],
    ["read back", of.store?.scrubTime ? <Time at={of.store.scrubTime} /> : "not since it was started"],
    ["callers", of.authentication ? "need credentials" : "need none: whoever reaches the address may do everything"],
    ["sandbox", `${of.sandbox?.tier ?? "off"}: ${(of.sandbox?.layers ?? []).join(", ")}`],
    ["not walled", (of.sandbox?.gaps ?? []).join("; ")],
    ["tools", count(of.tools)],
    ["calls", sums(of.toolCalls)],
    ["secrets", sums(of.redacted)],
    ["deleted", of.retention && `${count(of.retention.deletedRecords)} records, ${count(of.retention.deletedSessions)} sessions by their age`],
    ["servers", (of.bridges ?? []).map((b) => `${b.name} at ${b.address}: ${b.answering ? "answers" : b.away ? "away" : "does not answer"}`).join("; ")],
  ];
  return (
    <dl class="facts">
      {rows
        .filter(([, v]) => v)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value as string}</dd>
          </div>
        ))}
    </dl>
  );
}

interface Latency {
  name: string;
  calls: number;
  failed: number;
  /** How many took at most so many seconds, by the bounds of the server. */
  buckets: [number, number][];
}

const line = /^grpc_server_(handling_seconds_bucket|handled_total)\{(.*)\} (\S+)$/;

/** The calls with one answer that were made, those made most first. */
function latencies(metrics: string): Latency[] {
  const all = new Map<string, Latency>();
  for (const text of metrics.split("\n")) {
    const [, figure, labels, value] = line.exec(text) ?? [];
    const of = Object.fromEntries([...(labels ?? "").matchAll(/(\w+)="([^"]*)"/g)].map((m) => [m[1]!, m[2]!]));
    const n = Number(value);
    if (!figure || of.grpc_type !== "unary") continue;
    const name = `${of.grpc_service!.split(".").at(-1)}.${of.grpc_method}`;
    const key = of.grpc_service + name;
    const one = all.get(key) ?? { name: of.grpc_service!.startsWith("loombridge.") ? name : `${of.grpc_service}.${of.grpc_method}`, calls: 0, failed: 0, buckets: [] };
    all.set(key, one);
    if (figure === "handled_total") {
      one.calls += n;
      if (of.grpc_code !== "OK") one.failed += n;
    } else one.buckets.push([of.le === "+Inf" ? Infinity : Number(of.le), n]);
  }
  return [...all.values()].filter((l) => l.calls > 0).sort((a, b) => b.calls - a.calls || a.name.localeCompare(b.name));
}

/** The least bound that a share of the calls keeps. */
function within(of: Latency, share: number): string {
  const sorted = of.buckets.sort(([a], [b]) => a - b);
  const all = sorted.at(-1)?.[1] ?? 0;
  const [bound] = sorted.find(([, n]) => n >= share * all) ?? [Infinity];
  const time = (seconds: number) => (seconds < 1 ? `${+(1000 * seconds).toFixed(1)} ms` : `${seconds} s`);
  return bound === Infinity ? `> ${time(sorted.at(-2)?.[0] ?? 0)}` : `≤ ${time(bound)}`;
}

/** How long calls take. */
function Latencies() {
  const [most, setMost] = useState(12);
  const found = useCall<string>({ method: "GET", path: "/metrics" }, 10, askText);
  if (found.error?.status === 403) return null; // figures of the server are not for everybody
  return (
    <section>
      <h2>Calls since the server started, and within which time they were answered</h2>
      <Shown from={found}>
        {(text) => {
          const rows = latencies(text);
          return (
            <div class="scroll" tabIndex={0} role="region" aria-label="Latencies">
              <table>
                <thead>
                  <tr>
                    <th>call</th>
                    <th class="n">calls</th>
                    <th class="n">failed</th>
                    <th class="n">p50</th>
                    <th class="n">p95</th>
                    <th class="n">p99</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.slice(0, most).map((l) => (
                    <tr key={l.name}>
                      <td class="name">{l.name}</td>
                      <td class="n">{count(l.calls)}</td>
                      <td class={"n " + (l.failed ? "failed" : "muted")}>{count(l.failed)}</td>
                      {[0.5, 0.95, 0.99].map((share) => (
                        <td key={share} class="n">
                          {within(l, share)}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
              {rows.length > most && <button onClick={() => setMost(Infinity)}>show the other {count(rows.length - most)} calls</button>}
            </div>
          );
        }}
      </Shown>
    </section>
  );
}

/** The copies of the store, and a button that makes one. */
function Backups() {
  const list = useAll<{ backups?: Backup[]; nextPageToken?: string }>({ method: "GET", path: "/v1/backups", query: { page_size: 1000 } }, 10, "backups");
  const [progress, setProgress] = useState("");
  const [problem, setProblem] = useState<Failure>();
  const off = list.error?.reason === "NO_BACKUP_FOLDER";
  const call: Call = { method: "POST", path: "/v1/backups", body: {} };
  const make = () =>
    (question.value = {
      title: "Make a backup now?", what: <p>It copies what has changed since the last one into the server's folder of backups, while calls go on.</p>, yes: "make it",
      then: async () => {
        setProblem(undefined);
        listen<{ bytesDone?: string; bytesTotal?: string; backup?: Backup }>(call, new AbortController().signal, (m) => {
          setProgress(m.backup ? `${m.backup.name} is made` : `${bytes(m.bytesDone)} of ${bytes(m.bytesTotal)}`);
          if (m.backup) list.reload();
        }).catch(setProblem);
      },
    });
  return (
    <section>
      <div class="head">
        <h2>Backups</h2>
        {editing.value && !off && <button onClick={make}>make one now</button>}
      </div>
      <p role="status">{progress}</p>
      {problem && <Trouble of={problem} />}
      {off ? (
        <>
          <p class="note">This server makes no backups. It does when it is started with a folder for them:</p>
          <Line text="loom-bridge-server --backup-dir /var/backups/loom" />
        </>
      ) : (
        <Shown from={list}>
          {(data) =>
            data.backups?.length ? (
              <div class="scroll" tabIndex={0} role="region" aria-label="Backups">
                <table>
                  <thead>
                    <tr>
                      <th>backup</th>
                      <th>made</th>
                      <th class="n">bytes</th>
                      <th class="n">new</th>
                    </tr>
                  </thead>
                  <tbody>
                    {data.backups.map((b) => (
                      <tr key={b.name}>
                        <td class="name">{b.name}</td>
                        <td>
                          <Time at={b.createTime} />
                        </td>
                        <td class="n">{bytes(b.bytes)}</td>
                        <td class="n">{bytes(b.newBytes)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            ) : (
              <p class="note">There is no backup yet.</p>
            )
          }
        </Shown>
      )}
    </section>
  );
}

/** Whose memories there are, the largest first. */
function Disk() {
  const found = useAll<{ scopes?: Scope[]; nextPageToken?: string }>({ method: "GET", path: "/v1/scopes", query: { page_size: 1000 } }, 10, "scopes");
  return (
    <section>
      <h2>What memories hold</h2>
      <Shown from={found}>
        {(data) => {
          const size = (s: Scope) => Number(s.bytes ?? 0) || Number(s.records ?? 0);
          const rows = [...(data.scopes ?? [])].sort((a, b) => size(b) - size(a));
          const most = Math.max(1, ...rows.map(size));
          return (
            <div class="scroll" tabIndex={0} role="region" aria-label="What memories hold">
              <table>
                <thead>
                  <tr>
                    <th>whose</th>
                    <th class="n">records</th>
                    <th class="n">archived</th>
                    <th class="n">bytes</th>
                    <th>share</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.slice(0, 100).map((s) => {
                    const name = s.owner.agentId ?? s.owner.userId ?? s.owner.spaceId ?? "";
                    return (
                      <tr key={JSON.stringify(s.owner)}>
                        <td class="name">{name}</td>
                        <td class="n">{count(s.records)}</td>
                        <td class="n">{count(s.archived)}</td>
                        <td class="n">{s.bytes ? bytes(s.bytes) : "–"}</td>
                        <td class="wide">
                          <Bar part={size(s)} of={most} kind="accent" />
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
              {rows.length > 100 && <p class="muted">{`${count(rows.length - 100)}${data.nextPageToken ? " or more" : ""} smaller ones are not listed here.`}</p>}
            </div>
          );
        }}
      </Shown>
    </section>
  );
}

/** The long results of the agent that is looked at. */
function Blobs() {
  const name = agent.value;
  const found = useCall<{ usage?: { count?: string; bytes?: string; maxBytes?: string } }>(name ? { method: "GET", path: "/v1/blobs", query: { agent_id: name, page_size: 1 } } : undefined);
  const usage = found.data?.usage;
  if (!usage) return null;
  return (
    <section>
      <h2>
        Long results of <span class="name">{name}</span>
      </h2>
      <p class="figures">
        <b>{count(usage.count)}</b> results of <b>{bytes(usage.bytes)}</b>
        {usage.maxBytes && `, at most ${bytes(usage.maxBytes)}`}
      </p>
    </section>
  );
}

interface Setting {
  name: string;
  group: string;
  help: string;
  value: string;
  by: string;
  from?: string;
}

/** What the server was set to, and by what; secrets do not leave it. */
function Settings() {
  const [all, setAll] = useState(false);
  const found = useCall<{ settings: Setting[] }>({ method: "GET", path: "/settings" });
  if (found.error?.status === 403) return null; // they are for who runs the server
  return (
    <section>
      <h2>Settings in force</h2>
      <Shown from={found}>
        {({ settings }) => {
          const given = settings.filter((s) => s.by !== "default");
          const rows = all ? settings : given;
          return (
            <>
              {rows.length > 0 && (
                <div class="scroll" tabIndex={0} role="region" aria-label="Settings">
                  <table class="settings">
                    <thead>
                      <tr>
                        <th>setting</th>
                        <th>value</th>
                        <th>given by</th>
                        <th class="hide">what it does</th>
                      </tr>
                    </thead>
                    <tbody>
                      {rows.map((s) => (
                        <tr key={s.name}>
                          <td class="mono">{s.name}</td>
                          <td class="name">{s.value || "–"}</td>
                          <td class={s.by === "default" ? "muted" : ""}>
                            {s.by} <span class="mono muted">{s.from}</span>
                          </td>
                          <td class="muted hide">{s.help}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )}
              <p class="again">
                {!given.length && !all && <span>Nothing was set.</span>}
                <button onClick={() => setAll(!all)}>{all ? "show only what was set" : `show the ${count(settings.length - given.length)} that have their defaults`}</button>
              </p>
            </>
          );
        }}
      </Shown>
    </section>
  );
}
