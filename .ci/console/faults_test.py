"""What goes wrong under an open page: many tabs, lost connections, hostile answers."""

import asyncio
import json
import os
import signal
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import fill
import pytest
from playwright.async_api import (
    Browser,
    Error,
    Locator,
    Request,
    Route,
    expect,
)
from seen import Seen, ask, free_port

import loombridge
from loombridge import testing

CREDENTIALS = """
[[credential]]
token = "{}"
tenant = "acme"
agents = ["*"]
"""


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
    assert asked >= 2


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


async def test_lost_connection(browser: Browser) -> None:
    """A page says that the server is gone, keeps what it shows, and goes on when it is back."""
    port = free_port()
    async with testing.server(args=["--http-addr", f"127.0.0.1:{port}"]) as server:
        await fill.fill(server.address)
        context = await browser.new_context()
        page = await Seen(await context.new_page(), f"http://127.0.0.1:{port}").open("a/analyst/s")
        await expect(page.get_by_role("link", name="market")).to_be_visible()
        await server.kill9()
        await expect(page.get_by_role("status")).to_contain_text("does not answer")
        await expect(page.get_by_role("link", name="market")).to_be_visible()
        await server.start()
        await expect(page.get_by_role("status")).to_have_text("live")
        await context.close()


async def test_token(browser: Browser, tmp_path: Path) -> None:
    """A server with credentials shows nothing without a token, of which scripts see nothing.

    What stands for it in the browser serves all tabs, outlives a page and the server, and ends
    with the token, or for all tabs when a person signs out.
    """
    credentials = tmp_path / "credentials.toml"
    token = "console-test-token-0123456789abcdef"  # noqa: S105  of this test alone
    credentials.write_text(CREDENTIALS.format(token))
    credentials.chmod(0o600)
    port = free_port()
    args = ["--http-addr", f"127.0.0.1:{port}", "--credentials", str(credentials)]
    async with testing.server(args=args) as server:
        context = await browser.new_context()
        seen = Seen(await context.new_page(), f"http://127.0.0.1:{port}")
        page = await seen.open("a")
        empty = page.get_by_text("There is nothing yet")

        async def sign_in(given: str) -> None:
            await page.get_by_label("token").fill(given)
            await page.get_by_role("button", name="go on").click()

        await expect(page.get_by_text("asks who you are")).to_be_visible()
        other = Seen(await context.new_page(), seen.base)
        await other.open("a")
        await sign_in("wrong")
        await expect(page.get_by_text("does not take this token")).to_be_visible()
        await sign_in(token)
        await expect(page.get_by_role("heading", name="Agents")).to_be_visible()
        for tab in (page, other.page):
            await expect(tab.get_by_text("There is nothing yet")).to_be_visible()
        kept = "[document.cookie, JSON.stringify(sessionStorage), JSON.stringify(localStorage)]"
        cookies, session, local = await page.evaluate(kept)
        assert (cookies, session) == ("", "{}")
        assert token not in local
        (cookie,) = await context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        await page.reload()
        await expect(empty).to_be_visible()
        await server.kill9()
        await expect(page.get_by_role("status")).to_contain_text("does not answer")
        await server.start()
        await expect(page.get_by_role("status")).to_have_text("live")
        await expect(empty).to_be_visible()

        # A page of another port of this machine, to which the browser sends the cookie, too.
        stranger = await context.new_page()
        await stranger.route("http://127.0.0.1:1/**", lambda r: r.fulfill(body="<p>"))
        await stranger.goto("http://127.0.0.1:1/")
        call = f"fetch('{seen.base}/v1/status', {{credentials: 'include'"
        for options in ("", ", mode: 'no-cors'", ", headers: {'Loom-Key': 'x'}"):
            with pytest.raises(Error, match="Failed to fetch"):
                await stranger.evaluate(call + options + "})")
        await stranger.close()

        await page.get_by_role("button", name="sign out").click()
        for tab in (page, other.page):
            await expect(tab.get_by_text("You are signed out")).to_be_visible()
        assert await context.cookies() == []
        assert (await page.evaluate(kept))[2] == "{}"
        await sign_in(token)
        await expect(empty).to_be_visible()

        credentials.write_text(CREDENTIALS.format(token[::-1]))
        os.kill(server.pid, signal.SIGHUP)
        # Whichever asks first is told why, and tells the others.
        for tab in (page, other.page):
            await expect(tab.get_by_label("token")).to_be_visible()
            await expect(tab.get_by_text("signed out")).to_be_visible()
        assert await context.cookies() == []
        await seen.is_sound()
        await other.is_sound()
        await context.close()
