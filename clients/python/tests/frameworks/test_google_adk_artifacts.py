"""The artifacts for Google ADK, on the real server."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from typing import TypedDict

import pytest

pytest.importorskip("google.adk.sessions", reason="Google ADK is not installed")

from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

import loombridge
from loombridge import testing
from loombridge.google_adk import LoomBridgeArtifactService


class Owner(TypedDict):
    app_name: str
    user_id: str


class File(Owner):
    session_id: str
    filename: str


ANN: Owner = {"app_name": "app", "user_id": "ann"}


@pytest.fixture
async def artifacts(srv: testing.Server) -> AsyncGenerator[LoomBridgeArtifactService, None]:
    async with LoomBridgeArtifactService(srv.address) as artifacts:
        yield artifacts


def data(data: bytes, mime_type: str = "image/png") -> types.Part:
    return types.Part.from_bytes(data=data, mime_type=mime_type)


async def test_versions_outlive_their_server(srv: testing.Server) -> None:
    long = hashlib.shake_256().digest(5 << 20)  # More than one commit takes.
    parts = [data(b"\x00\xff"), types.Part(text="Pears *"), data(long), data(b"", "text/plain")]
    where: File = {**ANN, "session_id": "s1", "filename": "a/b*.png"}
    async with LoomBridgeArtifactService(srv.address) as artifacts:
        for number, part in enumerate(parts):
            custom = {"n": number}
            assert (
                await artifacts.save_artifact(**where, artifact=part, custom_metadata=custom)
                == number
            )
    await srv.kill9()
    await srv.start()
    async with LoomBridgeArtifactService(srv.address) as artifacts:
        assert await artifacts.list_versions(**where) == [0, 1, 2, 3]
        for number, part in enumerate(parts):
            assert await artifacts.load_artifact(**where, version=number) == part
        assert await artifacts.load_artifact(**where) == parts[-1]
        assert await artifacts.load_artifact(**where, version=4) is None
        versions = await artifacts.list_artifact_versions(**where)
        assert [(each.mime_type, each.custom_metadata) for each in versions] == [
            ("image/png", {"n": 0}),
            ("text/plain", {"n": 1}),
            ("image/png", {"n": 2}),
            ("text/plain", {"n": 3}),
        ]
        assert await artifacts.get_artifact_version(**where) == versions[3]
        assert await artifacts.get_artifact_version(**where, version=1) == versions[1]
        await artifacts.delete_artifact(**where)
        assert await artifacts.list_versions(**where) == []
    async with loombridge.connect(srv.address, agent_id="google-adk") as ctx:
        assert await ctx.memory.list() == []


async def test_files_of_sessions_and_of_users(artifacts: LoomBridgeArtifactService) -> None:
    for session, name in (("s1", "one"), ("s2", "two"), ("s1 ", "user:all"), (None, "user:own")):
        await artifacts.save_artifact(
            **ANN, session_id=session, filename=name, artifact={"text": name}
        )

    async def names(session: str | None = None, user: str = "ann") -> list[str]:
        return await artifacts.list_artifact_keys(app_name="app", user_id=user, session_id=session)

    assert await names("s1") == await names(" s1") == ["one", "user:all", "user:own"]
    assert await names("s2") == ["two", "user:all", "user:own"]
    assert await names() == ["user:all", "user:own"]
    assert await names("*") == ["user:all", "user:own"]
    assert await names("s1", "bob") == await names("s1", "*") == []
    everywhere = await artifacts.load_artifact(**ANN, session_id="s2", filename="user:all")
    assert everywhere == types.Part(text="user:all")
    for session, name in (("s1", ""), (None, "x"), ("../s", "x")):
        with pytest.raises(InputValidationError):
            await artifacts.load_artifact(**ANN, session_id=session, filename=name)
    with pytest.raises(InputValidationError):
        await artifacts.save_artifact(
            **ANN, session_id="s1", filename="x", artifact=types.Part(thought=True)
        )


async def test_of_many_writers_each_makes_a_version(
    artifacts: LoomBridgeArtifactService,
) -> None:
    where: File = {**ANN, "session_id": "s", "filename": "f"}
    texts = [str(n) * 20_000 for n in range(6)]
    numbers = await asyncio.gather(
        *(artifacts.save_artifact(**where, artifact={"text": each}) for each in texts)
    )
    assert sorted(numbers) == list(range(6))
    for number, text in zip(numbers, texts, strict=True):
        part = await artifacts.load_artifact(**where, version=number)
        assert part == types.Part(text=text)


async def test_references(artifacts: LoomBridgeArtifactService) -> None:
    async def refer(name: str, to: str, session: str = "s") -> None:
        part = types.Part(file_data=types.FileData(file_uri=to, mime_type="text/plain"))
        await artifacts.save_artifact(**ANN, session_id=session, filename=name, artifact=part)

    async def load(name: str) -> types.Part | None:
        return await artifacts.load_artifact(**ANN, session_id="s", filename=name)

    await artifacts.save_artifact(
        **ANN, session_id="s", filename="pears", artifact={"text": "Pears"}
    )
    known = await artifacts.get_artifact_version(**ANN, session_id="s", filename="pears")
    assert known is not None
    await refer("ref", known.canonical_uri)
    assert await load("ref") == types.Part(text="Pears")
    await refer("elsewhere", "gs://bucket/file")
    elsewhere = await load("elsewhere")
    assert elsewhere is not None
    assert elsewhere.file_data is not None
    assert elsewhere.file_data.file_uri == "gs://bucket/file"
    own = known.canonical_uri.replace("pears", "circle")
    await refer("circle", own)
    for hostile in (
        known.canonical_uri.replace("ann", "bob"),
        known.canonical_uri.replace("/s/", "/t/"),
        "artifact://nowhere",
    ):
        with pytest.raises(InputValidationError):
            await refer("bad", hostile)
    with pytest.raises(InputValidationError):
        await load("circle")
    await artifacts.save_artifact(
        **ANN, session_id="s", filename="pears", artifact=data(b"", "application/octet-stream")
    )
    assert await load("pears") is None  # As after a rewind.
    assert await load("ref") == types.Part(text="Pears")
