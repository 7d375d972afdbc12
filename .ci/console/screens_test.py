"""Every screen in a browser, against a server that was filled."""

import asyncio
import math
import re
import urllib.request
from collections.abc import Iterable

import fill
import pytest
from playwright.async_api import (
    expect,
)
from seen import Seen, ask, faults, fetch, prompts, sent_in

import loombridge
from loombridge import testing

FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0']"
REACHED = """
window.reached = new Set()
addEventListener("focusin", event => window.reached.add(event.target))
"""
PAYLOAD_AGENT = fill.PAYLOADS[0]


def screens(base: str) -> tuple[list[str], list[str]]:
    """Return an address of every screen, and further ones, whose screens are alike."""
    me, session = f"a/{fill.AGENT}", f"a/{fill.AGENT}/s/{fill.SESSION}"
    found = ask(base, f"/v1/memories?agent_id={fill.AGENT}&filter=key%3D%22fact/2%22&peek=true")
    record = found["records"][0]["id"]
    older, prompt = prompts(base, fill.SESSION)[-2:]
    hostile = "a/" + urllib.request.quote(PAYLOAD_AGENT, safe="")
    different = [
        "",
        "a",
        "hand?call=1",
        f"{me}/w",
        "house",
        f"{me}/m",
        f"{me}/m?q=bitcoin&sel={record}&limit=50",
        f"{me}/m/{record}?v=2",
        f"{me}/s",
        f"{session}?step=step_003&find=1.0.5",
        f"{session}/p/{prompt}",
        "a/nobody/s/none",
    ]
    alike = [
        f"{hostile}/m",
        f"{hostile}/m?q=window&limit=100",
        f"{hostile}/s/{urllib.request.quote(fill.PAYLOADS[1], safe='')}",
        f"{me}/m?q=bitcoin",
        f"{session}/p/{prompt}?find=1.0.5&diff={older}",
        *(f"{me}/s/forms/p/{p}" for p in prompts(base, "forms")),
        "a/nobody/m",
        "a/nobody/s",
        "nowhere",
    ]
    return different, alike


def rounded(costs: Iterable[float]) -> str:
    """Return the sum of costs as a pattern of whole numbers, whichever way it is rounded."""
    total = math.fsum(costs)
    return f"({math.floor(total):,}|{math.ceil(total):,})"


async def test_screens(seen: Seen) -> None:
    """Each screen runs no text, excludes nobody, fits 390 px, and is reached by keys alone."""
    different, alike = screens(seen.base)
    for path in alike:
        await seen.open(path)
        await seen.is_sound()
    for path in different:
        page = await seen.open(path)
        for scheme, rules in (("light", None), ("dark", ["color-contrast"])):
            await page.emulate_media(color_scheme=scheme)
            assert await faults(page, rules) == [], (path, scheme)
        await page.evaluate(REACHED)
        visible = await page.locator(f"css={FOCUSABLE}").filter(visible=True).count()
        for _ in range(visible + 10):  # a field of a time takes several
            await page.keyboard.press("Tab")
        assert await page.evaluate("window.reached.size") >= visible, path
        await page.set_viewport_size({"width": 390, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth <= 390"), path
        await page.set_viewport_size({"width": 1280, "height": 800})
        await seen.is_sound()


async def test_memory(seen: Seen) -> None:
    """What is found, why, and why something is not; what the API answers is what stands there."""
    page = await seen.open("a/analyst/m")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("analyst/market")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("bitcoin price")
    await page.get_by_role("option", name="search the memory of analyst").click()
    await expect(page).to_have_url(seen.base + "/console/a/analyst/m?q=bitcoin+price")
    await expect(page.get_by_role("region", name="Hits").locator(".row")).to_have_count(10)

    body = {
        "agent_id": "analyst",
        "query": "bitcoin price",
        "limit": 10,
        "explain": True,
    }
    answer = ask(seen.base, "/v1/memories:query", {**body, "peek": True})
    rows = page.get_by_role("region", name="Hits").locator(".row")
    for i, hit in enumerate(answer["hits"]):
        await expect(rows.nth(i)).to_contain_text(f"{hit['score']:.2f}")
    left = answer["receipt"]["leftOut"]
    fall = page.get_by_role("table", name="From candidates to hits")
    await expect(fall.get_by_role("row", name="candidates")).to_contain_text(
        str(10 + sum(left.values()))
    )
    for name, number in left.items():
        await expect(fall.get_by_role("row", name=name.replace("_", " "))).to_contain_text(
            f"\N{MINUS SIGN}{number}"
        )

    await page.keyboard.press("{")
    lines = page.get_by_role("region", name="Lines of curl")
    await expect(lines).to_contain_text("/v1/memories:query")
    await expect(lines).to_contain_text('"query":"bitcoin price"')
    await page.keyboard.press("Escape")

    why = page.get_by_label("why is this record not there?")
    old = ask(seen.base, "/v1/memories?agent_id=analyst&filter=key%3D%22fact/0%22&peek=true")
    replaced = old["records"][0]["id"]
    for name, reason in (
        (replaced, "was replaced by"),
        ("fact/0", "was replaced by"),
        ("after a week of falling volume", "was replaced by"),
        ("01AAAAAAAAAAAAAAAAAAAAAAAA", "no such record"),
        ("never said", "No record of this memory has this key"),
    ):
        await why.fill(name)
        await why.press("Enter")
        await expect(page.locator(".whynot")).to_contain_text(reason)


async def test_whether_a_query_finds_a_record(seen: Seen) -> None:
    """The page of a record says whether a query finds it, and why not."""
    old = ask(seen.base, "/v1/memories?agent_id=analyst&filter=key%3D%22fact/0%22&peek=true")
    page = await seen.open(f"a/analyst/m/{old['records'][0]['id']}")
    await page.get_by_label("does a query find it").fill("bitcoin price")
    await page.keyboard.press("Enter")
    await expect(page.locator(".whynot")).to_contain_text("was replaced by")
    assert await faults(page) == []


async def test_record(seen: Seen) -> None:
    """What a record said at a time, who may read it, and what the records it belongs to say."""
    found = ask(seen.base, "/v1/memories?agent_id=analyst&filter=key%3D%22fact/2%22&peek=true")
    page = await seen.open(f"a/analyst/m/{found['records'][0]['id']}")
    slider = page.get_by_label("as it was")
    await expect(slider).to_have_value("2")
    await slider.focus()
    await page.keyboard.press("ArrowLeft")
    await expect(page).to_have_url(re.compile(r"\?v=2$"))
    await expect(page.locator(".record ins")).to_have_text("2.5")
    await page.keyboard.press("Home")
    await expect(page.locator(".record")).to_have_text(fill.FACTS[2][0])
    await expect(page.get_by_role("region", name="Who may read it")).to_contain_text("analyst")
    newest = "/v1/memories?agent_id=analyst&filter=text:%22closed%20at%2047,200%22&peek=true"
    page = await seen.open(f"a/analyst/m/{ask(seen.base, newest)['records'][0]['id']}")
    graph = page.get_by_role("group", name="lead away")
    for fact in (3, 6):
        link = graph.get_by_role("link").filter(has_text=fill.FACTS[fact][0][:25])
        await expect(link).to_be_visible()
    await link.click()
    await expect(page.locator(".record")).to_have_text(fill.FACTS[6][0])
    desk = {"agent_id": "analyst", "space_id": "desk", "text": "The desk opens at nine."}
    shared = ask(seen.base, "/v1/memories", desk)["id"]
    await seen.open(f"a/analyst/m/{shared}?space=desk")
    readers = page.get_by_role("region", name="Who may read it")
    await expect(readers).to_contain_text("clerk write")
    assert await faults(page) == []


async def test_what_stood_behind_an_answer(seen: Seen) -> None:
    """An answer names the prompt that it was given to, and what of memory that prompt had."""
    page = await seen.open("a/analyst/s/market")
    rows = page.get_by_role("region", name="What was said and done").locator(".row")
    await rows.filter(has_text="Answer 13: volume did").click()
    newest = sent_in(seen.base, fill.SESSION)[-1]
    behind = page.get_by_role("region", name="What stood behind it")
    link = behind.get_by_role("link", name=f"prompt {newest['number']}")
    await expect(link).to_have_attribute("href", re.compile(newest["promptId"] + "$"))
    line = behind.get_by_role("listitem").filter(has_text=fill.FACTS[6][0])
    await expect(line.locator("mark").first).to_have_text("Volume")
    await line.get_by_role("link", name="its record").click()
    await expect(page.locator(".record")).to_have_text(fill.FACTS[6][0])


async def test_change(seen: Seen) -> None:
    """Nothing can be changed until editing is on; then a record is corrected, pinned, deleted."""
    found = ask(
        seen.base,
        "/v1/memories",
        {"agent_id": "clerk", "text": "Reports go out at five."},
    )
    page = await seen.open(f"a/clerk/m/{found['id']}")
    await expect(page.get_by_role("button", name="delete")).to_have_count(0)
    await page.get_by_role("button", name="read only").click()
    await page.get_by_label("text").fill("Reports go out at six.")
    await page.get_by_role("button", name="correct").click()
    await expect(page.get_by_role("dialog").locator("ins")).to_have_text("six.")
    await page.get_by_role("button", name="correct it").click()
    await expect(page.get_by_role("button", name="version 2")).to_be_visible()
    await expect(page.get_by_text("Struck out is what version 1 said")).to_be_visible()
    await page.get_by_role("button", name="pin", exact=True).click()
    await page.get_by_role("button", name="pin it").click()
    await expect(page.get_by_text("every prompt shows it")).to_be_visible()
    now = ask(seen.base, f"/v1/memories/{found['id']}?agent_id=clerk")
    assert (now["text"], now["pinned"], now["version"]) == (
        "Reports go out at six.",
        True,
        "3",
    )
    await page.get_by_role("button", name="delete").click()
    await page.get_by_role("button", name="delete it").click()
    await expect(page).to_have_url(seen.base + "/console/a/clerk/m")
    answer = ask(seen.base, "/v1/memories?agent_id=clerk&stats_only=true")
    assert answer["stats"]["records"] == "1"


async def test_prompts(seen: Seen) -> None:
    """A session's prompts by section, one of them as it was sent, and what it says no longer."""
    page = await seen.open("a/analyst/s")
    await page.get_by_role("link", name="market", exact=True).click()
    sent = ask(seen.base, "/v1/sessions/market/prompts?agent_id=analyst&text=1.0.5")
    newest = sent["prompts"][-1]
    stack = page.locator(".stack")
    await expect(stack.locator(".column")).to_have_count(len(sent["prompts"]))
    await expect(stack).to_contain_text(f"the last takes {newest['tokens']:,} tokens")
    for name, tokens in newest["parts"].items():
        await expect(stack).to_contain_text(f"{name} {tokens:,}")
    cost, other = (rounded(p[k] for p in sent["prompts"]) for k in ("cost", "appendOnlyCost"))
    await expect(stack).to_contain_text(
        re.compile(f"billed like {cost} tokens of input, with nothing folded like {other}")
    )
    cached = [p.get("expectedCachedTokens", 0) for p in sent["prompts"]]
    await expect(stack).to_contain_text(f"{cached[-1]:,} of them from the cache")
    most = max(p["tokens"] for p in sent["prompts"])
    hatched = await stack.locator("[fill='url(#cached)']").evaluate_all(
        "all => all.map(e => Number(e.getAttribute('height')))"
    )
    assert hatched == [pytest.approx(150 * n / most) for n in cached]
    assert any(cached)
    folded = [p for p in sent["prompts"] if p.get("foldBatch")]
    assert folded
    await expect(stack.locator(".foldmark")).to_have_count(len(folded))
    await expect(stack).to_contain_text(f"{len(folded)} batches of folds")
    await expect(stack).to_contain_text("0 renewals")

    await page.get_by_label("where is this text").fill("1.0.5")
    await page.keyboard.press("Enter")
    blame = page.get_by_role("region", name="Where the text stood")
    standing = [p["number"] for p in sent["prompts"] if p.get("places")]
    await expect(blame).to_contain_text(
        f"in {len(standing)} prompts, first in prompt {standing[0]}"
    )
    await expect(blame).to_contain_text(f"prompt {sent['losses'][0]['number']} shows it no longer")
    await blame.get_by_role("link", name=sent["origins"][0]["ref"]).click()
    await expect(page.get_by_role("complementary")).to_contain_text("1.0.59, close 46003")

    await page.get_by_text("the next prompt, as it would be now").click()
    dry = {"agent_id": "analyst", "dry_run": True}
    told = ask(seen.base, "/v1/sessions/market/prompts", dry)["tokens"]["tokens"]
    await expect(page.get_by_role("region", name="as it is", exact=True)).to_contain_text(
        f"{told:,} tokens"
    )
    await page.get_by_label("what if the history were").select_option("design")
    dry["history"] = {"policy": "HISTORY_POLICY_PRESET", "preset": "design"}
    told = ask(seen.base, "/v1/sessions/market/prompts", dry)["tokens"]["tokens"]
    await expect(page.get_by_role("region", name="what if", exact=True)).to_contain_text(
        f"{told:,} tokens"
    )

    await page.get_by_role("link", name=f"open prompt {newest['number']}").click()
    body = {"agent_id": "analyst", "as_of_prompt_id": newest["promptId"]}
    whole = ask(seen.base, "/v1/sessions/market/prompts", body)
    text = page.get_by_role("region", name="The prompt")
    await expect(text.locator("article")).to_have_count(len(whole["messages"]))
    await expect(text.locator(".p-system")).to_have_text("system" + whole["messages"][0]["content"])
    await expect(text.locator(".p-goal").last).to_contain_text("Report the week's market to Ann.")
    fold = text.get_by_role("button", name="open").first
    await fold.click()
    await expect(text.locator(".original").first).to_contain_text("0.0.59, close 46003")
    difference = ask(seen.base, "/v1/sessions/market/prompts:diff?agent_id=analyst")
    byte = int(difference["difference"]["byte"])
    await expect(page.locator(".first")).to_contain_text(f"byte {byte:,}")
    await page.keyboard.press("d")
    await expect(page).to_have_url(re.compile(r"\?diff=" + difference["fromPromptId"]))
    await expect(text.locator("ins").first).to_be_visible()
    await page.keyboard.press("[")
    await expect(page.get_by_role("heading", name="Prompt 13 of market")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Prompt 14 of market")).to_be_visible()


async def test_renewals(seen: Seen) -> None:
    """A renewal of the window is a line before the first prompt that began anew."""
    renewals = [p.get("renewals", 0) for p in sent_in(seen.base, "forms")]
    assert renewals == [0, 0, 0, 0, 1]
    page = await seen.open("a/analyst/s/forms")
    stack = page.locator(".stack")
    await expect(stack).to_contain_text("1 renewal of the window")
    await expect(stack.locator(".column").last.locator(".renewed")).to_have_count(1)
    await expect(stack.locator(".renewed")).to_have_count(1)


async def test_branches(seen: Seen) -> None:
    """What was undone, and who left a session, stand at the prompts where it was."""
    page = await seen.open("a/analyst/s/branches")
    stack = page.locator(".stack")
    columns = stack.locator(".column")
    await expect(columns).to_have_count(4)
    await expect(stack).to_contain_text("1 undo of folds")
    await expect(stack).to_contain_text("2 children, of which 1 fork")
    for mark in (".undomark", ".forkmark"):
        await expect(stack.locator(mark)).to_have_count(1)
        await expect(columns.nth(2).locator(mark)).to_have_count(1)
    await stack.get_by_role("link", name="twin").click()
    await expect(page.get_by_role("heading", name="of twin")).to_be_visible()


async def test_undo(seen: Seen, server: tuple[testing.Server, str]) -> None:
    """What a prompt has dropped is a click away, and the last folds are taken back."""
    async with loombridge.connect(server[0].address, agent_id="clerk", session_id="folds") as ctx:
        for n in range(6):
            await ctx.context.record_step("desk:files", {"day": n}, output=f"{n}, filed\n" * 200)
        await ctx.context.assemble()
        await ctx.context.compact()
        await ctx.context.assemble()
        first, second = sent_in(seen.base, "folds", "clerk")[-2:]
        page = await seen.open("a/clerk/s/folds")
        stack = page.locator(".stack")
        await stack.get_by_role("link", name="what it has dropped").click()
        await expect(page).to_have_url(
            re.compile(second["promptId"] + r"\?diff=" + first["promptId"])
        )
        gone = page.locator(".message.gone").filter(has_text="0, filed")
        await expect(gone.first).to_be_visible()
        await page.go_back()
        await expect(stack.get_by_role("button", name="take the last folds back")).to_have_count(0)
        await page.get_by_role("button", name="read only").click()
        await stack.get_by_role("button", name="take the last folds back").click()
        await page.get_by_role("button", name="take it back", exact=True).click()
        await expect(stack).to_contain_text("Back from the next prompt on: step_")
        again = await ctx.context.assemble()
        assert again.tokens == first["tokens"]


async def test_spaces(seen: Seen) -> None:
    """The spaces of an agent, and what was granted to whom."""
    page = await seen.open("a/analyst/m")
    await page.get_by_text("2 spaces that this agent may use").click()
    table = page.get_by_role("region", name="Spaces")
    for space in ask(seen.base, "/v1/spaces?agent_id=analyst")["spaces"]:
        name = space["spaceId"]
        row = table.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
        await expect(row).to_contain_text(f"{name}admin")
        quoted = urllib.request.quote(name, safe="")
        found = ask(seen.base, f"/v1/grants?agent_id=analyst&space_id={quoted}")["grants"]
        assert len(found) == 3
        for grant in found:
            access = grant["access"].removeprefix("ACCESS_").lower()
            await expect(row).to_contain_text(f"{grant['grantee']} {access} by analyst")
    assert await faults(page) == []
    await table.get_by_role("link", name="desk", exact=True).click()
    await expect(page.get_by_role("heading", name="Memory of the space desk")).to_be_visible()
    await seen.open("a/clerk/m")
    await page.get_by_text("2 spaces that this agent may use").click()
    await expect(table.get_by_role("row").filter(has_text="desk")).to_contain_text("write")
    await expect(table.get_by_text("its administrators see that")).to_have_count(2)


async def test_approval(seen: Seen, server: tuple[testing.Server, str]) -> None:
    """A call waits for the person at the page, who sees what it would do, and says yes."""
    page = await seen.open("hand")
    inbox = page.get_by_role("region", name="Calls that wait")
    async with loombridge.connect(server[0].address, agent_id="worker", session_id="s1") as ctx:

        async def call() -> loombridge.ToolResult:
            while True:  # until the server knows that somebody watches
                answer = await ctx.tool("fs:list_dir", {"path": "."})
                if answer.success:
                    return answer

        waiting = asyncio.create_task(call())
        one = inbox.get_by_role("article", name="fs:list_dir of worker")
        await expect(one).to_contain_text('{"path":"."}')
        await expect(one.get_by_role("button", name="yes")).to_have_count(0)
        await one.get_by_role("button", name="unlock this tab to answer").click()
        await one.get_by_role("button", name="yes, once").click()
        assert (await waiting).success
        await expect(one).to_have_count(0)
        waiting = asyncio.create_task(ctx.tool("fs:list_dir", {"path": "."}))
        await one.get_by_label("why").fill("not today")
        await one.get_by_role("button", name="no", exact=True).click()
        denied = (await waiting).error
        assert denied is not None
        assert denied.message.endswith("who said no: not today")
        await expect(one).to_have_count(0)
    calls = ask(seen.base, "/v1/audit?agent_id=console&caller_id=worker&page_size=1")
    assert calls["records"][0]["approvalNote"] == "not today"
    row = page.get_by_role("region", name="Calls, the last first").locator(".row").first
    await expect(row).to_contain_text("worker")
    await expect(row).to_contain_text("denied")
    await row.click()
    await expect(page.get_by_role("complementary")).to_contain_text("not today")


async def test_wires(seen: Seen, server: tuple[testing.Server, str]) -> None:
    """Events of before and those that come, messages, spawned agents."""
    page = await seen.open("a/analyst/w?topic=market.closed")
    events = page.get_by_role("region", name="Events, the last first").locator(".row")
    await expect(events).to_have_count(3)
    async with loombridge.connect(server[0].address, agent_id="clerk") as ctx:
        await ctx.emit("market.closed", {"day": "the next", "note": fill.PAYLOADS[2]})
    await expect(events).to_have_count(4)
    await expect(events.first).to_contain_text("the next")
    await events.first.click()
    await expect(page.get_by_role("complementary")).to_contain_text("the 4. of its topic")
    await expect(page.get_by_role("region", name="Spawned agents")).to_contain_text("checker")
    await expect(page.get_by_role("region", name="Messages")).to_contain_text("The report is filed")
    await seen.open("a/nobody/w?topic=nothing.here")
    await expect(page.get_by_text("There is none yet; this line emits one")).to_be_visible()


async def test_house(seen: Seen) -> None:
    """What the server says of itself, and how much each memory holds."""
    page = await seen.open("house")
    status = ask(seen.base, "/v1/status")
    await expect(page.locator(".facts").first).to_contain_text(status["version"])
    held = page.get_by_role("region", name="What memories hold")
    for scope in ask(seen.base, "/v1/scopes")["scopes"]:
        name = next(iter(scope["owner"].values()))
        row = held.get_by_role("row").filter(has=page.get_by_role("cell", name=name, exact=True))
        await expect(row).to_contain_text(scope.get("records", "0"))
    await expect(page.get_by_text("makes no backups")).to_be_visible()
    settings = ask(seen.base, "/settings")["settings"]
    given = [s for s in settings if s["by"] != "default"]
    rows = page.get_by_role("region", name="Settings").get_by_role("row")
    await expect(rows).to_have_count(1 + len(given))
    address = rows.filter(has=page.get_by_role("cell", name="http-addr", exact=True))
    await expect(address).to_contain_text(seen.base.removeprefix("http://"))
    await expect(address).to_contain_text("flag --http-addr")
    await page.get_by_role("button", name="that have their defaults").click()
    await expect(rows).to_have_count(1 + len(settings))

    metrics = fetch(urllib.request.Request(seen.base + "/metrics"))  # noqa: S310  loopback
    table = page.get_by_role("region", name="Latencies")
    await table.get_by_role("button", name="show the other").click()
    for call in ("BridgeService.MemorySave", "SessionService.AppendMessages"):
        service, method = call.split(".")
        labels = f'grpc_method="{method}",grpc_service="loombridge.v1.{service}",grpc_type="unary"'
        found = re.findall(
            rf"^grpc_server_handling_seconds_bucket{{{labels},le=\"(\S+)\"}} (\d+)$", metrics, re.M
        )
        buckets = [(float(bound.replace("+Inf", "inf")), int(n)) for bound, n in found]
        all_calls = buckets[-1][1]
        row = table.get_by_role("row").filter(has_text=call)
        await expect(row.get_by_role("cell").nth(1)).to_have_text(f"{all_calls:,}")
        cells = await row.get_by_role("cell").all_text_contents()
        times = [
            next(bound for bound, n in buckets if n >= share * all_calls)
            for share in (0.5, 0.95, 0.99)
        ]
        assert cells[0] == call
        for cell, time in zip(cells[3:], times, strict=True):
            assert cell == (f"\N{LESS-THAN OR EQUAL TO} {1000 * time:g} ms" if time < 1 else cell)


async def test_now(seen: Seen) -> None:
    """How many calls there were, and how many failed."""
    page = await seen.open("")
    found = ask(seen.base, "/v1/audit?agent_id=console&page_size=1000")["records"]
    failed = [
        r for r in found if r["outcome"] not in ("AUDIT_OUTCOME_OK", "AUDIT_OUTCOME_REPLAYED")
    ]
    await expect(page.get_by_text(f"{len(found)} calls, {len(failed)} of them")).to_be_visible()
    await expect(page.get_by_role("link", name="market")).to_be_visible()

    sessions, sent = 0, []
    for scope in ask(seen.base, "/v1/scopes?kind=SCOPE_KIND_AGENT")["scopes"]:
        agent = scope["owner"]["agentId"]
        quoted = urllib.request.quote(agent, safe="")
        listed = ask(seen.base, f"/v1/sessions?agent_id={quoted}&include_closed=true")
        each = [sent_in(seen.base, s["sessionId"], agent) for s in listed.get("sessions", [])]
        sessions += len([prompts for prompts in each if prompts])
        sent += [prompt for prompts in each for prompt in prompts]
    spend = page.get_by_role("region", name="Spend of the last day")
    await expect(spend).to_contain_text(f"{len(sent)} prompts of {sessions} sessions")
    for name, key in (("billed like", "cost"), ("with nothing folded", "appendOnlyCost")):
        total = re.compile(rounded(p.get(key, 0) for p in sent))
        await expect(spend.get_by_role("row").filter(has_text=name)).to_contain_text(total)
