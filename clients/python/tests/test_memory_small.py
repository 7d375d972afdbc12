"""A small memory, and one that is imported under sessions, against the real binary."""

import random

import loombridge

TEXTS = (
    "The tram to the harbour leaves at nine",
    "Maria likes her tea without sugar",
    "The red folder lies on the upper shelf",
    "Lunch with Peter was moved to Thursday",
    "Jones serviced the old boiler in the cellar",
    "The garden gate squeaks again",
    "Tickets for the opera are sold out",
    "Anna has finished the second chapter",
    "The printer needs a new cartridge",
    "Tom keeps his bicycle in the hall",
    "The bakery is closed on Mondays",
    "A parcel arrived from Lisbon",
)


# F08
async def test_words_are_found_among_few_vectors(live: loombridge.Client) -> None:
    rng = random.Random(3)  # noqa: S311

    def chance(length: float) -> list[float]:
        return [length * rng.gauss(0, 1) for _ in range(64)]

    asked = chance(1)
    for i, text in enumerate(TEXTS):  # which one is the nearest says nothing
        noise = chance(0.4 + 0.4 * ((i + 3) % 12))
        vector = [x + y for x, y in zip(asked, noise, strict=True)]
        await live.memory_save(text, embedding=vector, embedding_space="mine")
    hits = await live.memory_query(
        "Which boiler did Jones service?", embedding=asked, embedding_space="mine"
    )
    assert hits[0].record.text == TEXTS[4]


# F08
async def test_sessions_of_unrelated_lines_hide_nothing(live: loombridge.Client) -> None:
    rng = random.Random(5)  # noqa: S311
    words = [f"{a}{b}x{c}e" for a in "bdfgklmn" for b in "aeiou" for c in "bdfgklmnprstvwz"]
    weights = [1 / (10 + i) for i in range(len(words))]  # few are frequent
    lines = [" ".join(rng.choices(words, weights, k=12)) for _ in range(400)]
    for user, session in (("alone", ""), ("together", "import ")):
        drafts = [
            {"text": line, "session_id": f"{session}{i // 25}" if session else None}
            for i, line in enumerate(lines)
        ]
        await live.memory.save_many(drafts, user_id=user)
    found = 0
    for line in lines[:60]:
        query = " ".join([*line.split()[1:7:2], rng.choice(words)])
        alone, together = [
            {
                hit.record.id: hit.record.text
                for hit in await live.memory_query(query, user_id=user, mode="lexical")
            }
            for user in ("alone", "together")
        ]
        found += len({*alone.values()} & {*together.values()})
    assert found >= 270  # of 300
