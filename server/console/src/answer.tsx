// What a model knew when it said something: the prompt that it was given, and the memory in it.
import { useCall } from "./api";
import { count } from "./format";
import { Shown } from "./parts";
import { asOf, type Answer, partsOf, saidIn } from "./prompt";
import { to } from "./route";
import type { Sent } from "./sessions";

/** Lines that are shown at most. */
const most = 5;

/** A date with its time is one word: the 13 of one is not the 13 of something else. */
const word = String.raw`\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?|\p{L}[\p{L}\p{M}\p{N}]+|\p{N}+`;

const wordsOf = (text: string) => new Set(text.toLowerCase().match(new RegExp(word, "gu")) ?? []);

/** What a prompt says from memory, each line with the words that it shares with a text: first
 * those that share most, words that few lines have counting more. */
function shared(answer: Answer, text: string): { line: string; same: string[] }[] {
  const lines: string[] = [];
  for (const parts of partsOf(saidIn(answer), answer).values()) {
    for (const p of parts) if (p.kind === "memory") lines.push(...p.text.replace(/^<[a-z_]+>$|^<\/[a-z_]+>$/gm, "").split(/^- /m));
  }
  const each = [...new Set(lines.map((l) => l.trim()))].filter(Boolean).map((line) => ({ line, words: wordsOf(line) }));
  const having = new Map<string, number>();
  for (const { words } of each) for (const w of words) having.set(w, (having.get(w) ?? 0) + 1);
  const said = wordsOf(text);
  const ranked = each
    .map(({ line, words }) => ({ line, same: [...words].filter((w) => said.has(w)) }))
    .map((l) => ({ ...l, worth: l.same.reduce((sum, w) => sum + 1 / having.get(w)!, 0) }))
    .sort((a, b) => b.worth - a.worth);
  return ranked.filter((l) => l.worth > 0 && l.worth >= ranked[0]!.worth / 4).slice(0, most);
}

/** The prompt that an answer was given to, and what of memory in it the answer may come from. */
export function Behind({ agent, session, position, text, sent }: { agent: string; session: string; position: number; text: string; sent: Sent[] }) {
  const given = sent.findLast((p) => Number(p.lastPosition ?? 0) < position);
  const prompt = useCall<Answer>(given && asOf(agent, session, given.promptId));
  if (!given) return <p class="muted">No prompt before it is kept.</p>;
  return (
    <section aria-label="What stood behind it">
      <p>
        Said to <a href={to(["a", agent, "s", session, "p", given.promptId])}>prompt {count(given.number)}</a>.
      </p>
      <Shown from={prompt}>
        {(answer) => {
          const lines = shared(answer, text);
          if (!lines.length) return <p class="muted">Nothing of memory in that prompt shares a word with it.</p>;
          return (
            <>
              <h3>Of memory, that prompt had these in common with it:</h3>
              <ul class="behind">
                {lines.map(({ line, same }) => (
                  <Line key={line} agent={agent} line={line} same={same} />
                ))}
              </ul>
            </>
          );
        }}
      </Shown>
    </section>
  );
}

/** A line of memory, which leads to its record where the agent's own memory has it. */
function Line({ agent, line, same }: { agent: string; line: string; same: string[] }) {
  const query = line.slice(0, 1000);
  const found = useCall<{ hits?: { record: { id: string; text?: string } }[] }>({ method: "POST", path: "/v1/memories:query", body: { agent_id: agent, query, limit: 1, peek: true, include_archived: true } });
  const record = found.data?.hits?.[0]?.record;
  const own = record?.text && line.includes(record.text.trim());
  return (
    <li>
      {line.split(new RegExp(`(${word})`, "u")).map((piece, i) => (same.includes(piece.toLowerCase()) ? <mark key={i}>{piece}</mark> : piece))}{" "}
      <a href={own ? to(["a", agent, "m", record.id]) : to(["a", agent, "m"], { q: query })}>{own ? "its record" : "search for it"}</a>
    </li>
  );
}
