"""Writes the set that the search is measured by: sessions.jsonl and questions.jsonl.

Run it with the folder to write to; without one it writes beside itself:

    python3 generate.py [folder]

Names, statements and questions are those of tables.py, lives.py and scripts.py; chance
puts them together, always in the same way, so the files come out the same byte for byte.
A change of a table, or of the order in which numbers are drawn, changes all that comes
after it. synthetic_test.go saves all sessions and asks all questions with every `go test`.

sessions.jsonl has one session a line: scope (each is searched for itself), session, time,
and turns: author, text and, where a turn replaces an earlier one, that turn's id. Turn n
of session s has the id s-n. questions.jsonl has one question a line: scope, class,
question, evidence (ids of the turns that answer it) and stale (a turn that used to answer
it). What each class needs:

    single         one turn
    speaker        one turn of the named person; the other one says the same of themselves,
                   with other words in the place that matters
    multi          two turns of different sessions
    temporal       a turn about something that happened, asked for by the event or its day
    reply          an answer that shares no word with the question, right behind its turn
    updated        a fact that changed; the newer turn supersedes the older one
    restated       a fact that changed; the newer turn just says so
    contradiction  both sides
    cjk            Chinese, Japanese and Korean
    code           identifiers, paths, versions, error numbers
    unanswerable   nothing: no scope speaks of it, or only other scopes do

In English scopes two people talk over some months, in 22 sessions each, with small talk.
"""

import collections
import datetime
import json
import pathlib
import random
import sys
from typing import NamedTuple

import lives
import scripts
import tables

SEED = 20260301
CONVERSATIONS = 12
SESSIONS = 22
FOREIGN_SESSIONS = 12
CODE_CONVERSATIONS = 3
CODE_SESSIONS = 10

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]

# What the other one says to a fact.
REACTIONS = slice(31, 39)


class Fact(NamedTuple):
    """A turn that somebody asks for later."""

    key: str
    author: str
    text: str
    supersedes: str | None = None  # the key of the fact that it replaces
    prompt: tuple[str, str] | None = None  # author and text of the turn before it


class Question(NamedTuple):
    """A question about facts, by their keys. By day, text is whom it is about."""

    kind: str
    text: str
    evidence: list[str]
    stale: list[str] | None = None
    by_day: bool = False


class Conversation:
    """What two people talk about, over some months."""

    def __init__(self, rng, name, people, start, small_talk):
        """Begins a conversation that nothing was said in."""
        self.rng = rng
        self.name = name
        self.people = people
        self.time = start
        self.small_talk = small_talk
        self.facts = []
        self.questions = []
        self.ids = {}
        self.times = {}

    def tell(self, *fact, **more):
        """Lets something be said in one of the sessions."""
        self.facts.append(Fact(*fact, **more))

    def ask(self, *question, **more):
        """Lets something be asked at the end."""
        self.questions.append(Question(*question, **more))

    def sessions(self, count):
        """Returns that many sessions with all facts in them and small talk around."""
        spread = self._spread(count)
        return [self._session(n + 1, facts) for n, facts in enumerate(spread)]

    def _spread(self, count):
        """Puts the facts into sessions, what is old before what is new."""
        slots = sorted(self.rng.choice(range(count)) for _ in self.facts)
        order = list(range(len(self.facts)))
        self.rng.shuffle(order)
        places = {self.facts[i].key: place for place, i in enumerate(order)}
        for fact in self.facts:
            if not fact.key.endswith("/new"):
                continue
            old = fact.key.removesuffix("/new") + "/old"
            a, b = places[old], places[fact.key]
            if a > b:
                order[a], order[b] = order[b], order[a]
                places[old], places[fact.key] = b, a
        spread = [[] for _ in range(count)]
        for slot, i in zip(slots, order, strict=True):
            spread[slot].append(self.facts[i])
        return spread

    def _session(self, number, facts):
        rng = self.rng
        self.time += datetime.timedelta(
            days=rng.choice([2, 3, 5, 8, 13]), hours=rng.randrange(-3, 4)
        )
        session = f"{self.name}-{number}"
        turns = []
        self._chat(turns)
        for fact in facts:
            if rng.random() < 0.6:
                self._chat(turns)
            if fact.prompt:
                turns.append(list(fact.prompt))
            self.ids[fact.key] = f"{session}-{len(turns) + 1}"
            self.times[fact.key] = self.time
            turn = [fact.author, fact.text]
            if fact.supersedes:
                turn.append(self.ids[fact.supersedes])
            turns.append(turn)
            if rng.random() < 0.5:
                other = rng.choice([p for p in self.people if p != fact.author])
                turns.append([other, rng.choice(self.small_talk[REACTIONS])])
        if rng.random() < 0.7:
            self._chat(turns)
        time = self.time.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"scope": self.name, "session": session, "time": time, "turns": turns}

    def _chat(self, turns):
        n = self.rng.randrange(0, len(self.small_talk), 2)
        first, second = self.rng.sample(self.people, 2)
        turns.append([first, self.small_talk[n]])
        turns.append([second, self.small_talk[n + 1]])

    def asked(self):
        """Returns the questions as they are written, once all facts were told."""
        return [self._asked(q) for q in self.questions]

    def _asked(self, q):
        text = q.text
        if q.by_day:
            day = self.times[q.evidence[0]]
            month = MONTHS[day.month - 1]
            text = f"What happened to {q.text} around {day.day} {month} {day.year}?"
        asked = {"scope": self.name, "class": q.kind, "question": text}
        if q.evidence:
            asked["evidence"] = [self.ids[key] for key in q.evidence]
        if q.stale:
            asked["stale"] = [self.ids[key] for key in q.stale]
        return asked


def add_traits(talk, traits):
    """Tells of traits; of the first four both people speak in the same words."""
    rng = talk.rng
    for trait in traits[:4]:
        values = rng.sample(trait.values, 2)
        statement = rng.choice(trait.statements)
        question = trait.questions[trait.statements.index(statement)]
        for n, (person, value) in enumerate(zip(talk.people, values, strict=True), start=1):
            key = f"{trait.topic}{n}"
            talk.tell(key, person, statement.format(v=value))
            talk.ask("speaker", question.format(p=person), [key])
    for trait in traits[4:]:
        person = rng.choice(talk.people)
        n = rng.randrange(len(trait.statements))
        talk.tell(trait.topic, person, trait.statements[n].format(v=rng.choice(trait.values)))
        talk.ask("single", trait.questions[n].format(p=person), [trait.topic])


def add_changes(talk):
    """Tells of four changes, two of which name the turn that they replace."""
    rng = talk.rng
    for n, change in enumerate(rng.sample(lives.CHANGES, 4)):
        person = rng.choice(talk.people)
        before, after = rng.sample(change.values, 2)
        old, new = f"up-{change.topic}/old", f"up-{change.topic}/new"
        named = n < 2
        talk.tell(old, person, change.old.format(v=before))
        talk.tell(new, person, change.new.format(v=after), supersedes=old if named else None)
        kind = "updated" if named else "restated"
        talk.ask(kind, change.question.format(p=person), [new], [old])


def add_replies(talk):
    """Tells of three things only in answer to a question."""
    for n in talk.rng.sample(range(len(tables.REPLIES)), 3):
        person, other = talk.rng.sample(talk.people, 2)
        reply = tables.REPLIES[n]
        talk.tell(f"re{n}", person, reply.answer, prompt=(other, reply.prompt))
        talk.ask("reply", reply.question.format(p=person), [f"re{n}"])


def add_disputes(talk):
    """Tells both sides of two things."""
    for dispute in talk.rng.sample(lives.DISPUTES, 2):
        keys = ["con1" + dispute.question, "con2" + dispute.question]
        talk.tell(keys[0], talk.people[0], dispute.first)
        talk.tell(keys[1], talk.people[1], dispute.second)
        talk.ask("contradiction", dispute.question, keys)


def add_events(talk):
    """Tells of four events; for two it is asked by their day, too."""
    chosen = talk.rng.sample(range(len(tables.EVENTS)), 4)
    for n in chosen:
        person = talk.rng.choice(talk.people)
        key = f"ev{n}"
        talk.tell(
            key, person, talk.rng.choice(tables.EVENT_STATEMENTS).format(e=tables.EVENTS[n].told)
        )
        talk.ask("temporal", f"When did {person} {tables.EVENTS[n].asked}?", [key])
        if n in chosen[:2]:
            talk.ask("temporal", person, [key], by_day=True)


def add_relatives(talk):
    """Tells of three relatives, in two turns each."""
    rng = talk.rng
    names = rng.sample(tables.RELATIVES, 3)
    for n, (relation, name) in enumerate(zip(rng.sample(tables.RELATIONS, 3), names, strict=True)):
        person = rng.choice(talk.people)
        job, city = rng.choice(tables.JOBS), rng.choice(tables.CITIES)
        keys = [f"rel{n}a", f"rel{n}b"]
        talk.tell(
            keys[0], person, rng.choice(tables.RELATIVE_MOVES).format(r=relation, n=name, c=city)
        )
        talk.tell(keys[1], person, rng.choice(tables.RELATIVE_JOBS).format(n=name, j=job))
        question = tables.RELATIVE_QUESTION.format(p=person, r=relation, n=name)
        talk.ask("multi", question, keys)


def talk_in_english(rng, number, people):
    """Returns the sessions and the questions of a conversation."""
    start = datetime.datetime(2024, rng.randrange(1, 6), 3, 18)
    talk = Conversation(rng, f"e{number}", people, start, tables.SMALL_TALK)
    traits = rng.sample(lives.TRAITS, 9)
    add_traits(talk, traits)
    add_changes(talk)
    add_replies(talk)
    add_disputes(talk)
    add_events(talk)
    add_relatives(talk)
    sessions = talk.sessions(SESSIONS)
    for question in rng.sample(tables.UNANSWERABLE, 5):
        talk.ask("unanswerable", question.format(p=rng.choice(people)), [])
    for trait in lives.TRAITS:  # others are asked these, but nobody here ever spoke of it
        if trait not in traits:
            question = rng.choice(trait.questions)
            talk.ask("unanswerable", question.format(p=rng.choice(people)), [])
    return sessions, talk.asked()


def talk_in(rng, foreign):
    """Returns the sessions and the questions of a conversation in another script."""
    start = datetime.datetime(2024, 2, 3, 9)
    talk = Conversation(rng, foreign.scope, foreign.people, start, foreign.small_talk * 6)
    for n, (statement, question) in enumerate(foreign.facts):
        talk.tell(f"f{n}", rng.choice(foreign.people), statement)
        talk.ask("cjk", question, [f"f{n}"])
    for question in foreign.unanswerable:
        talk.ask("unanswerable", question, [])
    return talk.sessions(FOREIGN_SESSIONS), talk.asked()


def talk_about_code(rng, number, people):
    """Returns the sessions and the questions of a conversation of colleagues."""
    start = datetime.datetime(2024, 7, 1, 10)
    talk = Conversation(rng, f"c{number}", people, start, tables.SMALL_TALK)
    for n in rng.sample(range(len(tables.CODE)), 11):
        statement, question = tables.CODE[n]
        talk.tell(f"c{n}", rng.choice(people), statement)
        talk.ask("code", question, [f"c{n}"])
    sessions = talk.sessions(CODE_SESSIONS)
    for question in rng.sample(tables.CODE_UNANSWERABLE, 3):
        talk.ask("unanswerable", question, [])
    return sessions, talk.asked()


def generate():
    """Returns all sessions and all questions."""
    rng = random.Random(SEED)  # noqa: S311  nothing secret is made of it
    names = lives.NAMES[:]
    rng.shuffle(names)
    sessions, questions = [], []

    def add(talk):
        sessions.extend(talk[0])
        questions.extend(talk[1])

    for n in range(CONVERSATIONS):
        add(talk_in_english(rng, n + 1, names[2 * n : 2 * n + 2]))
    for foreign in (scripts.ZH, scripts.JA, scripts.KO):
        add(talk_in(rng, foreign))
    for n in range(CODE_CONVERSATIONS):
        add(talk_about_code(rng, n + 1, tables.CODE_PEOPLE[n]))
    return sessions, questions


def write(path, items):
    """Writes a file of one item a line."""
    lines = [json.dumps(i, ensure_ascii=False, separators=(",", ":")) + "\n" for i in items]
    path.write_text("".join(lines), encoding="utf-8")


def main():
    """Writes both files and says what is in them."""
    beside = pathlib.Path(__file__).parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    sessions, questions = generate()
    write(folder / "sessions.jsonl", sessions)
    write(folder / "questions.jsonl", questions)
    turns = sum(len(s["turns"]) for s in sessions)
    print(f"{len(sessions)} sessions, {turns} turns, {len(questions)} questions")
    for kind, n in collections.Counter(q["class"] for q in questions).most_common():
        print(f"{n:5} {kind}")


if __name__ == "__main__":
    main()
