"""What people tell of themselves in the conversations of generate.py, all made up."""

from typing import NamedTuple


class Trait(NamedTuple):
    """Something that people tell of themselves, with other words in place of {v}."""

    topic: str
    values: list[str]
    statements: list[str]
    questions: list[str]


class Change(NamedTuple):
    """Something that is told once and told otherwise later."""

    topic: str
    values: list[str]
    old: str
    new: str
    question: str


class Dispute(NamedTuple):
    """Something that the two do not agree about."""

    first: str
    second: str
    question: str


# Those who talk, two in each conversation.
NAMES = [
    "Mara",
    "Tobias",
    "Ines",
    "Yusuf",
    "Greta",
    "Oluwaseun",
    "Pavel",
    "Noor",
    "Linnea",
    "Dario",
    "Keiko",
    "Bram",
    "Salome",
    "Ruben",
    "Aiko",
    "Teodor",
    "Wanjiru",
    "Emil",
    "Farah",
    "Hugo",
    "Ilse",
    "Jonas",
    "Katya",
    "Lorenzo",
    "Mireille",
    "Nadia",
]

# What people tell of themselves. Statements and questions belong together in order.
TRAITS = [
    Trait(
        "pet",
        [
            "a three-legged greyhound called Biscuit",
            "a rescued parrot called Admiral",
            "two ferrets, Salt and Pepper",
            "an elderly tortoise called Norbert",
            "a one-eyed cat called Pirate",
            "a hedgehog named Thistle",
        ],
        [
            "Big news at home: we now have {v}.",
            "The shelter let us take {v} last week.",
            "My evenings belong to {v} these days.",
        ],
        [
            "What kind of animal does {p} have at home now?",
            "What did {p} take home from the shelter?",
            "Who takes up {p}'s evenings these days?",
        ],
    ),
    Trait(
        "instrument",
        [
            "the cello",
            "the accordion",
            "the hammered dulcimer",
            "the bassoon",
            "the theremin",
            "the oud",
        ],
        [
            "I finally signed up for lessons and started learning {v}.",
            "My teacher says my left hand is getting better at {v}.",
            "Every Tuesday after dinner I practise {v}.",
        ],
        [
            "Which instrument is {p} taking lessons in?",
            "On which instrument is {p}'s left hand getting better?",
            "What does {p} practise on Tuesdays after dinner?",
        ],
    ),
    Trait(
        "allergy",
        ["walnuts", "shellfish", "penicillin", "kiwi fruit", "sesame", "bee stings"],
        [
            "The doctor confirmed that I am allergic to {v}.",
            "Please remember for the dinner: no {v}, I get a bad allergic reaction.",
            "I carry an injector now because {v} could send me to hospital.",
        ],
        [
            "What is {p} allergic to?",
            "Which food gave {p} an allergic reaction, so that it is off the dinner?",
            "Why does {p} carry an injector?",
        ],
    ),
    Trait(
        "car",
        [
            "a rusty orange pickup",
            "a second-hand electric hatchback",
            "an old mail van painted green",
            "a sidecar motorcycle",
            "a tiny silver convertible",
            "a diesel estate with a roof box",
        ],
        [
            "I traded my bicycle money for {v}.",
            "You should see what I drive now: {v}.",
            "The garage says {v} will pass inspection.",
        ],
        [
            "What did {p} trade the bicycle money for?",
            "What does {p} drive?",
            "Which vehicle of {p} has to pass inspection at the garage?",
        ],
    ),
    Trait(
        "hobby",
        [
            "beekeeping",
            "letterpress printing",
            "fencing",
            "urban foraging",
            "restoring radios",
            "falconry",
        ],
        [
            "Lately I have fallen head over heels for {v}.",
            "My weekends vanish because of {v}.",
            "I joined a club for {v} near the river.",
        ],
        [
            "What has {p} fallen in love with lately?",
            "What makes {p}'s weekends vanish?",
            "Which club near the river did {p} join?",
        ],
    ),
    Trait(
        "course",
        [
            "marine navigation",
            "sign language",
            "pastry making",
            "bookbinding",
            "first aid",
            "Icelandic",
        ],
        [
            "The evening course in {v} starts on Monday and I got the last seat.",
            "I passed the exam of my {v} course with honours.",
            "I am taking a night class in {v}.",
        ],
        [
            "Which evening course did {p} get a seat in?",
            "In which course did {p} pass the exam with honours?",
            "Which night class does {p} take?",
        ],
    ),
    Trait(
        "breakfast",
        [
            "buckwheat porridge with plums",
            "smoked herring on rye",
            "shakshuka with goat cheese",
            "rice soup with ginger",
            "cold pizza and tea",
            "sourdough with fig jam",
        ],
        [
            "Nothing beats {v} for breakfast, I have it daily.",
            "My breakfast has been {v} for a month now.",
            "I wake up early just to eat {v} for breakfast.",
        ],
        [
            "What does {p} have for breakfast daily?",
            "What has been {p}'s breakfast for a month?",
            "For which breakfast does {p} wake up early?",
        ],
    ),
    Trait(
        "injury",
        [
            "a sprained ankle",
            "a torn shoulder muscle",
            "a broken thumb",
            "a slipped disc",
            "a bruised kneecap",
            "tennis elbow",
        ],
        [
            "The physiotherapist says {v} needs six weeks of rest.",
            "I fell off the ladder and ended up with {v}.",
            "No running for me, I am nursing {v}.",
        ],
        [
            "For which injury did the physiotherapist tell {p} to rest?",
            "How did {p} get hurt falling off the ladder?",
            "Why is {p} not running, what injury is it?",
        ],
    ),
    Trait(
        "book",
        [
            "a history of lighthouses",
            "a novel about glassblowers",
            "a memoir of a polar cook",
            "a thriller set in a salt mine",
            "a book of Estonian folk tales",
            "an atlas of vanished islands",
        ],
        [
            "I could not put down {v}.",
            "On the train I am reading {v}.",
            "My aunt lent me {v} and I finished it in two nights.",
        ],
        [
            "Which book could {p} not put down?",
            "What does {p} read on the train?",
            "Which book did {p}'s aunt lend?",
        ],
    ),
    Trait(
        "garden",
        [
            "purple carrots",
            "climbing roses",
            "a quince tree",
            "bamboo",
            "giant pumpkins",
            "lavender hedges",
        ],
        [
            "In the garden behind the shed I planted {v}.",
            "The neighbours admire the {v} in my garden.",
            "Frost nearly killed the {v} I grow in the garden.",
        ],
        [
            "What did {p} plant behind the shed in the garden?",
            "Which plants in {p}'s garden do the neighbours admire?",
            "What did the frost nearly kill in {p}'s garden?",
        ],
    ),
    Trait(
        "trip",
        [
            "the Faroe Islands",
            "Tbilisi",
            "the Atacama desert",
            "Zanzibar",
            "Lake Baikal",
            "the Dolomites",
        ],
        [
            "Tickets are booked: I am travelling to {v} this autumn.",
            "We came back from {v} with two thousand photos.",
            "My dream holiday in {v} is finally happening.",
        ],
        [
            "Where is {p} travelling this autumn?",
            "From where did {p} bring two thousand photos?",
            "What is {p}'s dream holiday?",
        ],
    ),
    Trait(
        "volunteer",
        [
            "the food bank on Mill Street",
            "the night shelter",
            "the seal rescue station",
            "the repair cafe",
            "the youth rowing club",
            "the hospital library",
        ],
        [
            "Every second Saturday I volunteer at {v}.",
            "They made me team leader of the volunteers at {v}.",
            "I give my free Saturdays to {v} as a volunteer.",
        ],
        [
            "Where does {p} volunteer every second Saturday?",
            "Of which volunteers is {p} team leader?",
            "To what does {p} give free Saturdays?",
        ],
    ),
]

# What people tell once, and tell otherwise later.
CHANGES = [
    Change(
        "job",
        [
            "the tram depot",
            "a seed bank",
            "the harbour office",
            "a map publisher",
            "the opera wardrobe",
            "a wind farm",
        ],
        "I work at {v}, mostly early shifts.",
        "I left my old position; since this week I work at {v}.",
        "Where does {p} work?",
    ),
    Change(
        "home",
        [
            "Chestnut Lane 14",
            "the flat above the bakery",
            "Quarry Road 3",
            "a houseboat on the canal",
            "Tower Court 88",
            "Fisher's Row 21",
        ],
        "My address is {v}, the bell is broken so knock.",
        "We moved! My new address is {v}.",
        "What is {p}'s address?",
    ),
    Change(
        "code",
        ["4821", "7310", "9954", "2068", "3377", "6142"],
        "The door code of my building is {v}.",
        "They changed the door code of my building, it is {v} now.",
        "What is the door code of {p}'s building?",
    ),
    Change(
        "plan",
        [
            "on the premium phone plan",
            "on the student phone plan",
            "on prepaid phone cards",
            "on the family phone plan",
            "on the shared phone plan",
            "on the travel phone plan",
        ],
        "I am {v} and pay far too much.",
        "I switched, so now I am {v}.",
        "Which phone plan does {p} have?",
    ),
    Change(
        "meeting",
        [
            "Monday at nine",
            "Wednesday at noon",
            "Thursday at four",
            "Friday at eight",
            "Tuesday at two",
            "Saturday at ten",
        ],
        "Our weekly planning meeting is on {v}.",
        "The weekly planning meeting is moved to {v}.",
        "When is {p}'s weekly planning meeting?",
    ),
    Change(
        "budget",
        [
            "eleven thousand",
            "six thousand",
            "nineteen thousand",
            "four thousand",
            "fifteen thousand",
            "twenty-two thousand",
        ],
        "The kitchen renovation budget is {v} in total.",
        "The kitchen renovation budget grew, it is {v} in total now.",
        "What is the budget of {p}'s kitchen renovation?",
    ),
]

# What two people do not agree about.
DISPUTES = [
    Dispute(
        "The launch of the new ferry line is in April.",
        "No, the ferry line launches in June, I saw the poster.",
        "When does the ferry line launch?",
    ),
    Dispute(
        "The old cinema was built by an Italian architect.",
        "As far as I know a Danish architect built the old cinema.",
        "Which architect built the old cinema?",
    ),
    Dispute(
        "The choir rehearsal lasts two hours.",
        "The choir rehearsal only lasts ninety minutes, trust me.",
        "How long does the choir rehearsal last?",
    ),
    Dispute(
        "Grandfather's clock came from Vienna.",
        "Our family always said that grandfather's clock came from Prague.",
        "Where did grandfather's clock come from?",
    ),
    Dispute(
        "The museum is free on Sundays.",
        "The museum charges full price on Sundays now.",
        "Is the museum free on Sundays?",
    ),
    Dispute(
        "The bridge repair costs three million.",
        "The bridge repair costs five million according to the paper.",
        "How much does the bridge repair cost?",
    ),
]
