"""Servers of the Model Context Protocol, and the search for tools."""

import pytest

import loombridge


async def test_servers(live: loombridge.Client) -> None:
    """Servers are added, looked at, connected to anew and removed."""
    servers = live.tools.servers
    assert await servers.list() == ()
    added = await servers.add("gone", command="/no/such/program", env={"KEY": "k"})
    assert added.name == "gone"
    assert added.command == ("/no/such/program",)
    assert not added.configured
    now = await servers.refresh("gone")
    assert now.state == "away"
    assert now.problem
    assert (await servers.refresh("gone", accept_changed=True)).changed == ()
    with pytest.raises(loombridge.McpServerExistsError):
        await servers.add("gone", url="http://127.0.0.1:1/mcp")
    with pytest.raises(loombridge.InvalidRequestError):
        await servers.add("neither")
    assert [s.name for s in await servers.list()] == ["gone"]
    await servers.remove("gone")
    with pytest.raises(loombridge.McpServerNotFoundError):
        await servers.remove("gone")


async def test_search(live: loombridge.Client) -> None:
    """A tool is found by what it does."""
    found = await live.tool("tools:search", {"query": "change a text file", "limit": 3})
    assert "fs:edit_file" in [tool["name"] for tool in found.output["tools"]]
