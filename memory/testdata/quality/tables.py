"""What else the conversations of generate.py are made of, all made up for this project."""

from typing import NamedTuple


class Event(NamedTuple):
    """Something that happened, as it is told and as it is asked for."""

    told: str
    asked: str


class Reply(NamedTuple):
    """An answer that shares no word with its question."""

    prompt: str
    answer: str
    question: str


# What happened to people: as they tell it, and as it is asked for.
EVENTS = [
    Event("ran the harbour half marathon", "run the harbour half marathon"),
    Event("gave a talk about moss at the library", "give a talk about moss"),
    Event("won the regional chess cup", "win the regional chess cup"),
    Event("watched the lunar eclipse from the dam", "watch the lunar eclipse"),
    Event("got my sailing licence", "get the sailing licence"),
    Event("repaired the church organ with the others", "repair the church organ"),
    Event("performed at the lantern festival", "perform at the lantern festival"),
    Event("handed in my thesis on river sediments", "hand in the thesis on river sediments"),
    Event("donated blood for the first time", "donate blood for the first time"),
    Event("slept in the mountain hut in a blizzard", "sleep in the mountain hut"),
    Event("cooked for eighty people at the street party", "cook for eighty people"),
    Event("found a Roman coin in the field", "find a Roman coin"),
]

# How they tell it.
EVENT_STATEMENTS = [
    "Yesterday I {e}, my legs still hurt.",
    "This afternoon I {e} and it was unforgettable.",
    "Can you imagine, I {e} two days ago.",
]

# Those whom people have, their names, their work and where they live.
RELATIONS = ["sister", "brother", "cousin", "neighbour", "godmother", "flatmate"]

RELATIVES = [
    "Odette",
    "Casimir",
    "Ludmila",
    "Ansel",
    "Beatrix",
    "Fergus",
    "Hedwig",
    "Ignatz",
    "Jolanta",
    "Kasper",
    "Leocadia",
    "Mungo",
    "Nikolai",
    "Ottilie",
    "Petronella",
    "Quentin",
]

JOBS = [
    "locksmith",
    "beekeeper",
    "tram driver",
    "court interpreter",
    "piano tuner",
    "glaciologist",
    "puppet maker",
    "lighthouse keeper",
]

CITIES = ["Ghent", "Tromsø", "Porto", "Lviv", "Trieste", "Galway", "Bergen", "Kraków"]

RELATIVE_MOVES = ["My {r} {n} moved to {c} in spring.", "{n}, my {r}, has a new flat in {c}."]
RELATIVE_JOBS = ["{n} earns a living as a {j}, imagine that.", "It turns out {n} trained as a {j}."]
RELATIVE_QUESTION = "What is the profession of {p}'s {r}, and in which city does {n} live?"

# Questions about what nobody speaks of.
UNANSWERABLE = [
    "What is the blood type of {p}?",
    "Which astronaut did {p} interview?",
    "How many submarines does {p} own?",
    "What is {p}'s favourite opera singer?",
    "Which vaccine did {p} refuse?",
    "What did {p} pay for the helicopter ride?",
    "Who is {p}'s divorce lawyer?",
    "Which skyscraper did {p} climb without ropes?",
    "What was the title of {p}'s patent on batteries?",
    "Which kingdom does {p}'s ancestor come from?",
    "What cryptocurrency did {p} mine?",
    "What colour is the wedding dress of {p}'s daughter?",
    "Which password manager does {p} recommend?",
    "What did the plumber tell {p} about the boiler?",
    "How tall is {p}'s basketball coach?",
    "Which perfume does {p} wear to weddings?",
]

# Small talk, in pairs of question and answer.
SMALL_TALK = [
    "Good morning! How did you sleep?",
    "Not too bad, the neighbours were quiet for once.",
    "Did you see the rain last night?",
    "I did, the whole street was a river.",
    "I am so tired of meetings today.",
    "Same here, I could use a walk.",
    "Have you eaten yet?",
    "Only a sandwich, I was in a hurry.",
    "What are you up to this weekend?",
    "Probably nothing special, some laundry and a film.",
    "The bus was late again this morning.",
    "Typical, mine did not come at all.",
    "Thanks for listening the other day, it helped a lot.",
    "Of course, any time. That is what friends are for.",
    "The light in the evening is beautiful at the moment.",
    "I noticed that too, autumn is the best season.",
    "Do you have a minute?",
    "Sure, tell me.",
    "Ha, that made me laugh out loud.",
    "You are impossible, I love it.",
    "I lost my umbrella somewhere.",
    "Check the lost and found at the station.",
    "My phone battery dies so quickly.",
    "Maybe it is time for a new one?",
    "Can you believe how expensive tomatoes are?",
    "I know, I stopped buying them.",
    "Let us have coffee soon.",
    "Yes please, I miss our talks.",
    "I had the strangest dream.",
    "Tell me everything.",
    "Anyway, I should get going.",
    "Take care, talk soon!",
    "Wow, that is wonderful!",
    "Oh no, I am sorry to hear that.",
    "Really? I had no idea.",
    "That sounds like a lot of work.",
    "Are you serious?",
    "Completely serious, ask anyone.",
    "I have to think about it.",
    "No rush, let me know.",
]

# What is answered with no word of the question.
REPLIES = [
    Reply(
        "And what are you keeping in the big aquarium?",
        "Two axolotls, always hungry.",
        "What does {p} keep in the big aquarium?",
    ),
    Reply(
        "Who is going to look after the orchard while you are away?",
        "My uncle, he has done it before.",
        "Who looks after the orchard for {p}?",
    ),
    Reply(
        "How do you take the stains out of the tablecloth?",
        "With lemon and salt, never fails.",
        "How does {p} take stains out of the tablecloth?",
    ),
    Reply(
        "Which seat did they give you on the night flight?",
        "Thirty-one B, right by the galley.",
        "Which seat did {p} get on the night flight?",
    ),
    Reply(
        "What did the locksmith find inside the safe?",
        "Nothing but old stamps.",
        "What did the locksmith find in {p}'s safe?",
    ),
    Reply(
        "Where did you leave the spare key of the cabin?",
        "Under the blue flowerpot.",
        "Where did {p} leave the spare key of the cabin?",
    ),
    Reply(
        "What will you bring to the potluck?",
        "Lentil stew, enough for an army.",
        "What will {p} bring to the potluck?",
    ),
    Reply(
        "Why was the concert called off?",
        "The singer lost her voice.",
        "According to {p}, why was the concert called off?",
    ),
    Reply(
        "How long did you wait at the passport office?",
        "Five hours, without a chair.",
        "How long did {p} wait at the passport office?",
    ),
    Reply(
        "Which colour did you choose for the hallway?",
        "A dark teal, almost green.",
        "Which colour did {p} choose for the hallway?",
    ),
]

# What colleagues tell about code, and the question for it.
CODE = [
    (
        "The retry limit lives in RetryPolicy.maxBackoffMillis and defaults to 30000.",
        "What is the default of maxBackoffMillis?",
    ),
    (
        "parse_config in src/loader/yaml_reader.py raises KeyError when the region is absent.",
        "When does parse_config raise KeyError?",
    ),
    (
        "I renamed getUserName to fetchDisplayName because the old one lied.",
        "What was getUserName renamed to?",
    ),
    (
        "We must pin libfoo to v2.14.3, anything newer breaks the ABI.",
        "Which version of libfoo do we pin?",
    ),
    (
        "The flaky test is TestShardRebalance in cluster/rebalance_test.go.",
        "Which file holds TestShardRebalance?",
    ),
    ("Error E4017 means that the lease expired before the flush.", "What does E4017 mean?"),
    (
        "Set FEATURE_DARK_LAUNCH=1 in the staging environment only.",
        "Where is FEATURE_DARK_LAUNCH set?",
    ),
    (
        "The migration 0042_drop_legacy_index.sql takes four minutes on production.",
        "How long does 0042_drop_legacy_index.sql take?",
    ),
    (
        "HTTPServerFactory.newListener leaks a goroutine when the port is taken.",
        "What leaks a goroutine in newListener?",
    ),
    (
        "Grafana board latency-p99 reads the histogram rpc_duration_seconds.",
        "Which histogram does latency-p99 read?",
    ),
    (
        "The customer table has a composite key of tenant_id and external_ref.",
        "What is the composite key of the customer table?",
    ),
    (
        "To rebuild the protos run make generate-protos inside tools/codegen.",
        "How are the protos rebuilt?",
    ),
    (
        "The nightly job vacuum_blobs runs at 03:15 on host db-replica-7.",
        "On which host does vacuum_blobs run?",
    ),
    (
        "Ticket OPS-1183 tracks the certificate that ends on 2025-03-31.",
        "Which ticket tracks the certificate?",
    ),
    (
        "We cap the queue with max_inflight = 256 in broker.toml.",
        "What is the value of max_inflight?",
    ),
    (
        "isEligibleForRefund returns false for gift cards, on purpose.",
        "What does isEligibleForRefund return for gift cards?",
    ),
]

# The colleagues.
CODE_PEOPLE = [["Priya", "Stefan"], ["Malte", "Aroha"], ["Chidi", "Solveig"]]

CODE_UNANSWERABLE = [
    "What does renderInvoicePdf return?",
    "Which mutex guards the sessionRegistry?",
    "Who wrote the kernel driver for the scanner?",
    "What is the port of the telnet bastion?",
    "Which compiler flag disables vectorization?",
]
