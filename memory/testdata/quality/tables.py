"""What the conversations of generate.py are made of, all made up for this project."""

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


class Event(NamedTuple):
    """Something that happened, as it is told and as it is asked for."""

    told: str
    asked: str


class Reply(NamedTuple):
    """An answer that shares no word with its question."""

    prompt: str
    answer: str
    question: str


class Foreign(NamedTuple):
    """A conversation in another script; facts come with their questions."""

    scope: str
    people: list[str]
    facts: list[tuple[str, str]]
    small_talk: list[str]
    unanswerable: list[str]


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

ZH = Foreign(
    "zh",
    ["小林", "阿芳"],
    [
        ("下个月我要去敦煌看石窟。", "打算去哪里看石窟？"),
        ("医生说我对花生过敏。", "对什么东西过敏？"),
        ("我养了一只会说话的八哥。", "家里养了什么鸟？"),
        ("周三晚上我在学习古筝。", "周三晚上学什么乐器？"),
        ("我把旧自行车换成了电动三轮车。", "旧自行车换成了什么？"),
        ("我哥哥在青岛开了一家海鲜餐馆。", "哥哥在哪里开餐馆？"),
        ("办公室的门禁密码改成了六八二四。", "门禁密码是多少？"),
        ("昨天我在图书馆丢了一把红色雨伞。", "红色雨伞丢在哪里？"),
        ("妈妈做的酸菜鱼是全家最爱的菜。", "全家最爱的菜是什么？"),
        ("我的毕业论文写的是长江的泥沙。", "毕业论文写的是什么？"),
        ("房东把房租涨到了四千五百元。", "房租涨到了多少？"),
        ("女儿的幼儿园在人民公园旁边。", "女儿的幼儿园在哪里？"),
    ],
    [
        "早上好，昨晚睡得好吗？",
        "还不错，就是有点累。",
        "今天天气真好。",
        "是啊，我们出去走走吧。",
        "你吃饭了吗？",
        "还没有，等一下再吃。",
        "谢谢你，真的帮了大忙。",
        "不客气，有事随时找我。",
    ],
    [
        "潜水艇的船长叫什么名字？",
        "哪位宇航员接受了采访？",
        "离婚律师的电话是多少？",
        "直升机票花了多少钱？",
    ],
)

JA = Foreign(
    "ja",
    ["さくら", "健太"],
    [
        ("来月、屋久島で縄文杉を見る予定です。", "縄文杉はどこで見る予定ですか？"),
        ("病院の検査でそばアレルギーだと分かりました。", "何のアレルギーですか？"),
        ("先週から三味線を習い始めました。", "習い始めた楽器は何ですか？"),
        ("庭にブルーベリーの苗を植えました。", "庭に何の苗を植えましたか？"),
        ("弟は札幌で獣医として働いています。", "弟は札幌で何の仕事をしていますか？"),
        ("会議室の暗証番号は五九三一に変わりました。", "会議室の暗証番号は？"),
        ("古い着物からかばんを作りました。", "かばんは何から作りましたか？"),
        ("祖母の時計は京都の骨董市で買ったものです。", "祖母の時計はどこで買いましたか？"),
        ("犬の名前はコロッケに決めました。", "犬の名前は何ですか？"),
        ("カメラを修理に出したら三万円かかりました。", "カメラの修理はいくらかかりましたか？"),
        ("毎朝、納豆と卵焼きを食べています。", "毎朝何を食べていますか？"),
        ("娘は弓道部の部長になりました。", "娘は何部の部長ですか？"),
    ],
    [
        "おはよう、よく眠れた？",
        "うん、まあまあかな。",
        "今日は暑いね。",
        "本当に、溶けそう。",
        "お昼もう食べた？",
        "まだ、これから食べるよ。",
        "ありがとう、助かった。",
        "どういたしまして。",
    ],
    [
        "潜水艦の艦長の血液型は？",
        "宇宙飛行士の靴のサイズは？",
        "ヘリコプターの免許はいつ取得？",
        "離婚した弁護士の事務所はどこ？",
    ],
)

KO = Foreign(
    "ko",
    ["민지", "도윤"],
    [
        ("다음 달에 제주도에서 한라산을 등반할 거예요.", "한라산을 등반하는 곳은 어디예요?"),
        ("저는 새우 알레르기가 있어요.", "무슨 알레르기가 있어요?"),
        ("요즘 가야금을 배우고 있어요.", "요즘 배우는 악기는 가야금인가요?"),
        ("마당에 감나무를 심었어요.", "마당에 심은 나무는?"),
        ("언니는 부산에서 약사로 일해요.", "언니는 부산에서 무슨 일을 해요?"),
        ("현관 비밀번호가 칠이공사로 바뀌었어요.", "현관 비밀번호는 무엇인가요?"),
        ("고양이 이름은 호두예요.", "고양이 이름은 뭐예요?"),
        ("어제 지하철에서 파란 우산을 잃어버렸어요.", "파란 우산을 어디서 잃어버렸어요?"),
        ("아침마다 미역국을 먹어요.", "아침마다 무엇을 먹어요?"),
        ("중고 트럭을 사백만 원에 샀어요.", "중고 트럭은 얼마예요?"),
        ("동생은 양궁 대회에서 우승했어요.", "동생은 어느 대회에서 우승했어요?"),
        ("토요일마다 도서관에서 봉사해요.", "토요일마다 어디에서 봉사해요?"),
    ],
    [
        "안녕, 잘 잤어?",
        "응, 그럭저럭.",
        "오늘 날씨 정말 좋다.",
        "맞아, 산책하자.",
        "밥 먹었어?",
        "아직, 조금 이따가.",
        "고마워, 덕분에 살았어.",
        "천만에, 언제든지.",
    ],
    [
        "잠수함 함장의 혈액형은?",
        "우주 비행사의 신발 크기는?",
        "헬리콥터 면허 번호는?",
        "이혼 변호사 사무실 위치는?",
    ],
)

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
