"""The console in a browser: every screen, against a server that was filled.

LOOM_BRIDGE_SERVER is the server, CHROMIUM the browser, AXE the file of axe-core.
"""

import asyncio
import json
import math
import os
import re
import socket
import urllib.request
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import fill
import pytest
from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Route,
    async_playwright,
    expect,
)

import loombridge
from loombridge import testing

AXE = Path(os.environ["AXE"]).read_text()
PAYLOAD_AGENT = fill.PAYLOADS[0]
# What a busy machine may take for what is done in a moment.
expect.set_options(timeout=30_000)
CREDENTIALS = """
[[credential]]
token = "{}"
tenant = "acme"
agents = ["*"]
"""
FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0']"

REACHED = """
window.reached = new Set()
addEventListener("focusin", event => window.reached.add(event.target))
"""


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(request: urllib.request.Request) -> str:
    """Return what stands at an address."""
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  loopback
        return answer.read().decode()


def ask(base: str, path: str, body: object = None) -> Any:
    """Return the answer of a call."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data else {}
    request = urllib.request.Request(base + path, data, headers)  # noqa: S310  loopback
    return json.loads(fetch(request))


class Seen:
    """A page, and what it did that it must not."""

    def __init__(self, page: Page, base: str) -> None:
        """Watch a page."""
        self.page, self.base = page, base
        self.wrong: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda err: self.wrong.append(str(err)))
        page.on("request", self._asked)
        page.on("dialog", lambda d: self.wrong.append(f"a dialog: {d.message}"))

    def _said(self, message: ConsoleMessage) -> None:
        # A call that is refused is the page's business, and the browser tells it anyway.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(self.base + "/"):
            self.wrong.append(f"asked {request.url}")

    async def open(self, path: str) -> Page:
        """Open an address of the console, and wait until it is drawn."""
        answer = await self.page.goto(self.base + "/console/" + path)
        assert answer is not None
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        await expect(self.page.locator("h1").first).to_be_visible()
        await expect(self.page.locator("main[aria-busy='true']")).to_have_count(0)
        return self.page

    async def is_sound(self) -> None:
        """Check that nothing of a text was run, and nothing else went wrong."""
        assert await self.page.evaluate("window.ran") is None
        assert self.wrong == []


@pytest.fixture(scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[testing.Server, str], None]:
    """A filled server, and where it serves HTTP."""
    port = free_port()
    settings = tmp_path_factory.mktemp("settings") / "loom.toml"
    settings.write_text('[[bind]]\ntool = "fs:list_dir"\napproval = "always"\n')
    args = ["--http-addr", f"127.0.0.1:{port}", "--config", str(settings)]
    async with testing.server(args=args) as srv:
        await fill.fill(srv.address)
        yield srv, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser, None]:
    """A browser without a window."""
    async with async_playwright() as p:
        # A browser's own sandbox does not work for root; what it shows is this machine's.
        path = os.environ["CHROMIUM"]
        started = await p.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        await started.close()


@pytest.fixture
async def seen(browser: Browser, server: tuple[testing.Server, str]) -> AsyncGenerator[Seen, None]:
    """A page of the console, which must be sound at the end."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = Seen(await context.new_page(), server[1])
    yield page
    await page.is_sound()
    await context.close()


def sent_in(base: str, session: str, agent: str = fill.AGENT) -> list[dict[str, Any]]:
    """Return the prompts that a session of an agent has sent."""
    quoted = [urllib.request.quote(name, safe="") for name in (session, agent)]
    answer = ask(base, "/v1/sessions/{}/prompts?agent_id={}".format(*quoted))
    return answer.get("prompts", [])


def prompts(base: str, session: str) -> list[str]:
    """Return their ids."""
    return [sent["promptId"] for sent in sent_in(base, session)]


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


async def faults(page: Page, only: list[str] | None = None) -> list[tuple[str, list[str]]]:
    """Return what excludes people from what a page shows: rules, and what breaks them."""
    options = {"resultTypes": ["violations"], **({"runOnly": only} if only else {})}
    await page.evaluate(AXE)
    found = await page.evaluate("options => axe.run(options)", options)
    return [
        (v["id"], [n["html"] for n in v["nodes"]])
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]


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
        ("01AAAAAAAAAAAAAAAAAAAAAAAA", "no such record"),
    ):
        await why.fill(name)
        await why.press("Enter")
        await expect(page.locator(".whynot")).to_contain_text(reason)


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
    await expect(stack).to_contain_text("1 renewals of the window")
    await expect(stack.locator(".column").last.locator(".renewed")).to_have_count(1)
    await expect(stack.locator(".renewed")).to_have_count(1)


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
    calls = ask(seen.base, "/v1/audit?agent_id=console&caller_id=worker&page_size=1")
    assert calls["records"][0]["outcome"] == "AUDIT_OUTCOME_OK"
    row = page.get_by_role("region", name="Calls, the last first").locator(".row").first
    await expect(row).to_contain_text("worker")
    await expect(row).to_contain_text("ok")


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


async def test_house(seen: Seen) -> None:
    """What the server says of itself, and how much each memory holds."""
    page = await seen.open("house")
    status = ask(seen.base, "/v1/status")
    await expect(page.locator(".facts").first).to_contain_text(status["version"])
    held = page.get_by_role("region", name="What memories hold")
    for scope in ask(seen.base, "/v1/scopes")["scopes"]:
        name = next(iter(scope["owner"].values()))
        row = held.get_by_role("row").filter(has=page.get_by_role("cell", name=name, exact=True))
        await expect(row).to_contain_text(scope["records"])
    await expect(page.get_by_text("makes no backups")).to_be_visible()

    metrics = fetch(urllib.request.Request(seen.base + "/metrics"))  # noqa: S310  loopback
    table = page.get_by_role("region", name="Latencies")
    for call in ("BridgeService.MemorySave", "SessionService.AppendMessages"):
        service, method = call.split(".")
        labels = f'grpc_method="{method}",grpc_service="loombridge.v1.{service}",grpc_type="unary"'
        found = re.findall(
            rf"^grpc_server_handling_seconds_bucket{{{labels},le=\"(\S+)\"}} (\d+)$", metrics, re.M
        )
        buckets = [(float(bound.replace("+Inf", "inf")), int(n)) for bound, n in found]
        all_calls = buckets[-1][1]
        row = table.get_by_role("row").filter(has_text=call)
        cells = await row.get_by_role("cell").all_text_contents()
        times = [
            next(bound for bound, n in buckets if n >= share * all_calls)
            for share in (0.5, 0.95, 0.99)
        ]
        assert cells[:2] == [call, f"{all_calls:,}"]
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


async def test_tabs_share_streams(browser: Browser, server: tuple[testing.Server, str]) -> None:
    """Tabs that show the same hold one stream open, and any number of them stays alive."""
    context = await browser.new_context()
    watching: set[Request] = set()
    context.on("request", lambda r: watching.add(r) if "approvals:watch" in r.url else None)
    for end in ("requestfinished", "requestfailed"):
        context.on(end, lambda r: watching.discard(r))
    tabs = [Seen(await context.new_page(), server[1]) for _ in range(6)]
    for tab in tabs:
        await tab.open("")
    assert len(watching) == 1

    async def ask_for(agent: str) -> None:
        async with loombridge.connect(server[0].address, agent_id=agent) as ctx:
            while not (await ctx.tool("fs:list_dir", {"path": "."})).success:
                pass  # in the moment in which another tab takes over, nobody watches

    def waits(tab: Seen, agent: str) -> Locator:
        return tab.page.get_by_role("article", name=f"fs:list_dir of {agent}")

    first = asyncio.create_task(ask_for("one"))
    for tab in tabs:
        await expect(waits(tab, "one")).to_have_count(1)
    late = Seen(await context.new_page(), server[1])
    await late.open("hand")
    await expect(waits(late, "one")).to_have_count(1)
    watching.clear()
    await tabs[0].page.close()  # the one that listens
    second = asyncio.create_task(ask_for("two"))
    for tab in (*tabs[1:], late):
        await expect(waits(tab, "two")).to_have_count(1)
        await expect(waits(tab, "one")).to_have_count(1)
    assert len(watching) == 1
    for agent, task in (("one", first), ("two", second)):
        one = waits(tabs[3], agent)
        await one.get_by_role("button").first.click()
        if agent == "one":  # it was to unlock the tab
            await one.get_by_role("button", name="yes, once").click()
        await task
        for tab in (*tabs[1:], late):
            await expect(waits(tab, agent)).to_have_count(0)
    for tab in (*tabs, late):
        assert tab.wrong == []
    await context.close()


async def test_tabs_of_many_topics(browser: Browser, server: tuple[testing.Server, str]) -> None:
    """Tabs that listen to different things see what comes: two at once, the others by looks."""
    context = await browser.new_context()
    tabs = [Seen(await context.new_page(), server[1]) for _ in range(4)]
    for n, tab in enumerate(tabs):
        await tab.open(f"a/analyst/w?topic=many.{n}")
    async with loombridge.connect(server[0].address, agent_id="analyst") as ctx:
        for n in range(len(tabs)):
            await ctx.emit(f"many.{n}", {"n": n})
    for tab in tabs:
        rows = tab.page.get_by_role("region", name="Events, the last first").locator(".row")
        await expect(rows).to_have_count(1)
        await tab.is_sound()
    await context.close()


async def test_lists_are_read_to_their_end(seen: Seen) -> None:
    """A list of several pages is whole; one of very many says that it is not."""
    pages = 3

    async def listed(route: Route, field: str, rows: list[dict[str, object]]) -> None:
        given = parse_qs(urlsplit(route.request.url).query)
        at = int(given.get("page_token", ["1"])[0])
        await answer(route, {field: rows, **({"nextPageToken": str(at + 1)} if at < pages else {})})

    async def sessions(route: Route) -> None:
        await listed(route, "sessions", [{"sessionId": f"s{n}"} for n in range(100)])

    async def scopes(route: Route) -> None:
        owners = [{"owner": {"agentId": f"a{n}"}, "records": "1"} for n in range(100)]
        await listed(route, "scopes", owners)

    await seen.page.route("**/v1/sessions?**", sessions)
    await seen.page.route("**/v1/scopes?**", scopes)
    for path, name in (("a/busy/s", "Sessions, the last used first"), ("a", "Agents and memories")):
        pages = 3
        page = await seen.open(path)
        height = page.get_by_role("region", name=name).locator(".rows")
        await expect(height).to_have_css("height", f"{300 * 30}px")
        await expect(page.get_by_text("There are more than these")).to_have_count(0)
        pages = 30
        await seen.open(path)
        await expect(height).to_have_css("height", f"{2000 * 30}px")
        await expect(page.get_by_text("There are more than these 2,000")).to_be_visible()


async def answer(route: Route, body: object) -> None:
    """Answer a call of the page in the server's place."""
    await route.fulfill(content_type="application/json", body=json.dumps(body))


async def test_pages_hang_together(seen: Seen) -> None:
    """What is listed stays listed while more comes; a page that can't be had is asked for once."""
    calls = [
        {"number": str(n), "tool": f"tool {n}", "createTime": "2026-11-30T00:00:00Z"}
        for n in range(1, 401)
    ]
    asked: list[str] = []
    broken = False

    async def audit(route: Route) -> None:
        given = parse_qs(urlsplit(route.request.url).query)
        token = given.get("page_token", [""])[0]
        asked.append(token)
        if token and broken:
            await route.fulfill(status=500, body="{}")
            return
        rows = [c for c in reversed(calls) if not token or int(c["number"]) < int(token)][:200]
        more = {"nextPageToken": rows[-1]["number"]} if int(rows[-1]["number"]) > 1 else {}
        await answer(route, {"records": rows, **more})

    await seen.page.route("**/v1/audit?**", audit)
    page = await seen.open("hand")
    rows = page.get_by_role("region", name="Calls, the last first")
    height = rows.locator(".rows")
    await expect(height).to_have_css("height", f"{200 * 30}px")
    await rows.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    await expect(height).to_have_css("height", f"{400 * 30}px")
    calls += [
        {"number": str(n), "tool": f"tool {n}", "createTime": "2026-11-30T00:00:00Z"}
        for n in range(401, 451)
    ]
    await expect(height).to_have_css("height", f"{450 * 30}px")
    await rows.evaluate("e => e.scrollTo(0, 0)")
    # More than a page came at once: what hangs together with it is not known.
    calls += [
        {"number": str(n), "tool": f"tool {n}", "createTime": "2026-11-30T00:00:00Z"}
        for n in range(451, 751)
    ]
    await expect(height).to_have_css("height", f"{200 * 30}px")
    broken = True
    await rows.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    await expect(page.get_by_role("alert")).to_contain_text("HTTP 500")
    await expect(rows.locator(".row").last).to_contain_text("tool 551")
    refused = asked.count("551")
    polls = asked.count("")
    while asked.count("") < polls + 2:
        await page.wait_for_event("requestfinished")
    # Each look at the first page lets it be asked for once more.
    assert asked.count("551") - refused <= asked.count("") - polls + 1


async def test_streams_go_on(seen: Seen) -> None:
    """A stream that the server ends is begun again; one that wants a token asks for it."""
    asked = 0
    code = 14

    async def watch(route: Route) -> None:
        nonlocal asked
        asked += 1
        said = {"error": {"code": code, "message": "the server is stopping"}}
        await route.fulfill(body=json.dumps(said) + "\n")

    await seen.page.route("**/v1/approvals:watch?**", watch)
    page = await seen.open("")
    for _ in range(2):
        await page.wait_for_event("request", lambda r: "approvals:watch" in r.url)
    await expect(page.get_by_text("No call waits")).to_be_visible()
    code = 16
    await expect(page.get_by_label("token")).to_be_visible()
    assert asked > 2


async def test_hostile_shapes(seen: Seen) -> None:
    """Texts that are very long, nested very deep or have no shape leave a page as it is."""
    plain, hostile = "The gate is open.", "The gate\U000e0041\ufe0f is \u3164open."
    for text in (plain, hostile):
        ask(seen.base, "/v1/memories", {"agent_id": "gate", "text": text})
    page = await seen.open("a/gate/m")
    await expect(page.get_by_text("The gate<U+E0041><U+FE0F> is <U+3164>open.")).to_be_visible()
    await seen.open("a/gate/m?asof=never")
    await expect(page.get_by_text(plain)).to_be_visible()

    deep = "[" * 9000 + "]" * 9000
    event = f'{{"result":{{"event":{{"id":"1","topic":"a.b","payload":{deep}}}}}}}\n'
    await page.route("**/v1/events:subscribe?**", lambda r: r.fulfill(body=event))
    await seen.open("a/gate/w?event=1")
    await expect(page.get_by_role("complementary")).to_contain_text("list of 1")
    await page.unroute_all()

    def prompt(content: str) -> object:
        return {"messages": [{"role": "ROLE_USER", "content": content}], "receipt": {}}

    sent = [{"promptId": "p1", "number": "1"}, {"promptId": "p2", "number": "2"}]
    texts = {"p1": "<a>\n" * 100_000, "p2": "<b>\n" * 130_000}

    async def prompts_of(route: Route) -> None:
        if route.request.method == "GET":
            await answer(route, {"prompts": sent})
        else:
            await answer(route, prompt(texts[route.request.post_data_json["as_of_prompt_id"]]))

    await page.route("**/v1/sessions/s/prompts?**", prompts_of)
    await page.route("**/v1/sessions/s/prompts", prompts_of)
    await page.route(
        "**/prompts:diff?**",
        lambda r: answer(r, {"difference": {"section": "history"}}),
    )
    await seen.open("a/gate/s/s/p/p1")
    await expect(page.get_by_role("region", name="The prompt")).to_contain_text("<a>")
    await seen.open("a/gate/s/s/p/p2?diff=p1")
    await expect(page.get_by_role("region", name="The prompt").locator("ins")).to_be_visible()


async def test_a_question_is_answered_once(seen: Seen) -> None:
    """A yes that is given twice counts once."""
    found = ask(seen.base, "/v1/memories", {"agent_id": "twice", "text": "The gate is open."})
    page = await seen.open(f"a/twice/m/{found['id']}")
    deleted = 0

    async def remove(route: Route) -> None:
        nonlocal deleted
        if route.request.method == "DELETE":
            deleted += 1
        await route.continue_()

    await page.route("**/v1/memories/**", remove)
    await page.get_by_role("button", name="read only").click()
    await page.get_by_role("button", name="delete").click()
    await page.get_by_role("button", name="delete it").evaluate(
        "b => { b.click(); setTimeout(() => b.click()); }"
    )
    await expect(page).to_have_url(seen.base + "/console/a/twice/m")
    assert deleted == 1


async def test_lost_connection(seen: Seen, server: tuple[testing.Server, str]) -> None:
    """A page says that the server is gone, keeps what it shows, and goes on when it is back."""
    page = await seen.open("a/analyst/s")
    await expect(page.get_by_role("link", name="market")).to_be_visible()
    await server[0].kill9()
    await expect(page.get_by_role("status")).to_contain_text("does not answer")
    await expect(page.get_by_role("link", name="market")).to_be_visible()
    await server[0].start()
    await expect(page.get_by_role("status")).to_have_text("live")
    seen.wrong.clear()  # the browser may tell of connections that were refused


async def test_token(browser: Browser, tmp_path: Path) -> None:
    """A server with credentials shows nothing without a token, and the page keeps none."""
    credentials = tmp_path / "credentials.toml"
    token = "console-test-token-0123456789abcdef"  # noqa: S105  of this test alone
    credentials.write_text(CREDENTIALS.format(token))
    credentials.chmod(0o600)
    port = free_port()
    args = ["--http-addr", f"127.0.0.1:{port}", "--credentials", str(credentials)]
    async with testing.server(args=args):
        context = await browser.new_context()
        seen = Seen(await context.new_page(), f"http://127.0.0.1:{port}")
        page = await seen.open("a")
        await expect(page.get_by_text("asks who you are")).to_be_visible()
        await page.get_by_label("token").fill("wrong")
        await page.get_by_role("button", name="go on").click()
        await expect(page.get_by_text("does not take this token")).to_be_visible()
        await page.get_by_label("token").fill(token)
        await page.get_by_role("button", name="go on").click()
        await expect(page.get_by_role("heading", name="Agents")).to_be_visible()
        await expect(page.get_by_text("There is nothing yet")).to_be_visible()
        other = Seen(await context.new_page(), seen.base)
        await other.open("a")
        await expect(other.page.get_by_text("There is nothing yet")).to_be_visible()
        await other.is_sound()
        await other.page.close()
        kept = await page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]")
        assert kept == ["", 0, 0]
        await page.reload()
        await expect(page.get_by_label("token")).to_be_visible()
        await seen.is_sound()
        await context.close()
