"""The pages below /docs in a browser. That their links lead somewhere, Go tests."""

from urllib.parse import urljoin

from seen import Seen, faults


async def test_pages(seen: Seen) -> None:
    """Each page excludes nobody, and fits 390 px."""
    page = seen.page
    await page.goto(seen.base + "/docs/")
    assert await faults(page) == []
    await page.emulate_media(color_scheme="dark")
    assert await faults(page, ["color-contrast"]) == []
    await page.emulate_media(color_scheme="light")
    listed = page.get_by_role("navigation", name="Pages").locator("a[href$='.md']")
    paths = await listed.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert len(paths) > 20
    await page.set_viewport_size({"width": 390, "height": 800})
    for path in paths:
        await page.goto(urljoin(seen.base, path))
        assert await faults(page) == [], path
        assert await page.evaluate("document.documentElement.scrollWidth <= 390"), path
