"""Artifacts: files that agents make, each in versions."""

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import (
    ArtifactVersion,
    BaseArtifactService,
    ensure_part,
)
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types
from pydantic_core import to_jsonable_python

from loombridge import _client, _errors, _filters, _parts, _records
from loombridge.google_adk import _services

KIND = "adk.artifact"
"""The kind of the record of a version."""

PART_KIND = "adk.part"
"""The kind of a record that holds more of one."""

MOST_BYTES = 64 << 20
"""Bytes of a version, as of a result that an agent's tool may give."""

INSIDE_BYTES = 4 << 10
"""Bytes that the record of a version holds itself, so that listings stay short."""

FOLLOWED = 5
"""References that are followed, one to the next, as ADK's own services do."""

USER = "user:"
"""With what the name of a file begins that all sessions of a user have."""

REMOVED = types.Blob(mime_type="application/octet-stream", data=b"")
"""What ADK saves where a session is rewound to before a file."""


@dataclass(frozen=True, slots=True)
class _File:
    """Whose a file is, and its name."""

    app: str
    user: str
    session: str | None
    """None: it is the user's."""
    name: str

    @property
    def about(self) -> dict[str, str]:
        """What a record says of it."""
        return {**_owner(self.app, self.user, self.session), "file": self.name}

    @property
    def filter(self) -> str:
        """What lets the records of its versions through."""
        return f"kind = {_filters.literal(KIND)} AND {self.everything}"

    @property
    def everything(self) -> str:
        """What lets all of its records through."""
        return _where(self.about)

    def key(self, version: int) -> str:
        """Return the key of a version's record, of which there is one."""
        names = json.dumps([*self.about.values(), version])
        return f"{KIND}:{hashlib.sha256(names.encode()).hexdigest()}"

    def address(self, version: int) -> str:
        """Return the address by which another artifact may refer to a version."""
        return artifact_util.get_artifact_uri(self.app, self.user, self.name, version, self.session)


class LoomBridgeArtifactService(_services.Service, BaseArtifactService):
    """A `BaseArtifactService` of ADK; close it, or use it in an `async with` block.

    Any event loop may use it, and several processes the same files: of two that save a file at
    the same time, each makes a version. A version has at most 64 MiB, and is there as a whole or
    not at all. Its own metadata have at most 32 KiB of JSON.
    """

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Save a version of a file and return its number, from 0.

        Raises:
            InputValidationError: a name that does not fit, a part that is no file, or a
                reference to what another user or session has.
        """
        file = _file(app_name, user_id, session_id, filename)
        part = ensure_part(artifact)
        about = {
            "mime": _media_type(file, part),
            "custom": to_jsonable_python(custom_metadata or {}),
        }
        data = (part.inline_data.data if part.inline_data else None) or b""
        if len(data) > MOST_BYTES:
            raise InputValidationError(f"An artifact has at most {MOST_BYTES} bytes.")
        head = part.model_dump_json(exclude_none=True, exclude={"inline_data": {"data"}})

        async def save(ctx: _client.Client) -> int:
            while True:
                newest = await _newest(ctx, file)
                version = _number(newest) + 1 if newest else 0
                main = _records.RecordDraft(
                    text=filename,
                    key=file.key(version),
                    kind=KIND,
                    session_id=file.session or "",
                    metadata={"artifact": {**file.about, **about, "version": version}},
                )
                others = {"artifact": file.about}
                drafts = _parts.drafts(
                    main, PART_KIND, head, [data], inside=INSIDE_BYTES, about=others
                )
                try:
                    # One commit, up to 4 MiB; of more the last has the record that names the rest.
                    await ctx.memory.save_many(drafts)
                except _errors.RecordExistsError:
                    # Another was faster with that version.
                    for expression in _filters.some(
                        "key", [each.key or "" for each in drafts[:-1]]
                    ):
                        await ctx.memory.delete_matching(expression)
                    continue
                return version

        return await self._loop.acall(save)

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """Return a version of a file, or the newest; None: there is none, or it was removed.

        Raises:
            InputValidationError: a name that does not fit, or a reference that leads elsewhere,
                or to more than five others.
        """
        file = _file(app_name, user_id, session_id, filename)
        for _ in range(1 + FOLLOWED):
            part = await self._loop.acall(partial(_load, file=file, version=version))
            if part is None or not artifact_util.is_artifact_ref(part):
                return part
            file, version = _target(file, part)
        raise InputValidationError(f"Too many artifacts refer to each other from {filename}.")

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """Return the names of a user's files, and with a session those of its own, in order."""
        owners = [_owner(app_name, user_id, session_id)]
        if session_id is not None:
            owners.append(_owner(app_name, user_id, None))

        async def find(ctx: _client.Client) -> set[str]:
            return {
                _about(record)["file"]
                for owner in owners
                async for record in _listed(ctx, f'kind = "{KIND}" AND {_where(owner)}')
            }

        return sorted(await self._loop.acall(find))

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete all versions of a file."""
        file = _file(app_name, user_id, session_id, filename)
        await self._loop.acall(lambda ctx: ctx.memory.delete_matching(file.everything))

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """Return the numbers of a file's versions."""
        versions = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        return [each.version for each in versions]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Return what is known of a file's versions, the first one first."""
        file = _file(app_name, user_id, session_id, filename)

        async def find(ctx: _client.Client) -> list[ArtifactVersion]:
            return [_version(file, record) async for record in _listed(ctx, file.filter)]

        return sorted(await self._loop.acall(find), key=lambda each: each.version)

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """Return what is known of a version of a file, or of the newest; None: there is none."""
        file = _file(app_name, user_id, session_id, filename)
        record = await self._loop.acall(partial(_find, file=file, version=version))
        return record and _version(file, record)


def _file(app: str, user: str, session: str | None, name: str) -> _File:
    """Return the file of a name.

    Raises:
        InputValidationError: a name does not fit.
    """
    if not name:
        raise InputValidationError("filename must not be empty.")
    if name.startswith(USER):
        session = None
    elif session is None:
        raise InputValidationError("A file of a session needs its session_id.")
    owner = _owner(app, user, session)
    return _File(app, user, owner.get("session"), name)


def _owner(app: str, user: str, session: str | None) -> dict[str, str]:
    """Return what records say of whose they are; a session's names are as of its service."""
    artifact_util.validate_path_segment(app, "app_name")
    artifact_util.validate_path_segment(user, "user_id")
    owner = {"app": app, "user": user}
    if session is None:
        return {**owner, "of": "user"}
    artifact_util.validate_path_segment(session, "session_id")
    return {**owner, "of": "session", "session": session.strip()}


def _where(about: dict[str, str]) -> str:
    return " AND ".join(
        f"metadata.artifact.{name} = {_filters.literal(value)}" for name, value in about.items()
    )


def _media_type(file: _File, part: types.Part) -> str | None:
    """Return what a part says of its bytes.

    Raises:
        InputValidationError: it is no file, or a reference that leads elsewhere.
    """
    if part.inline_data is not None:
        return part.inline_data.mime_type
    if part.text is not None:
        return "text/plain"
    if part.file_data is None:
        raise InputValidationError("An artifact is data, a text or the address of a file.")
    if artifact_util.is_artifact_ref(part):
        _target(file, part)
        return None
    return part.file_data.mime_type


def _target(file: _File, part: types.Part) -> tuple[_File, int]:
    """Return what a reference leads to.

    Raises:
        InputValidationError: it leads nowhere, or to what another user or session has.
    """
    address = (part.file_data.file_uri if part.file_data else None) or ""
    parsed = artifact_util.parse_artifact_uri(address)
    if parsed is None:
        raise InputValidationError(f"{address} is no address of an artifact.")
    artifact_util.validate_artifact_reference_scope(
        app_name=file.app, user_id=file.user, session_id=file.session, parsed_uri=parsed
    )
    target = _file(parsed.app_name, parsed.user_id, parsed.session_id, parsed.filename)
    return target, parsed.version


async def _load(ctx: _client.Client, *, file: _File, version: int | None) -> types.Part | None:
    record = await _find(ctx, file=file, version=version)
    if record is None:
        return None
    try:
        head, (data,) = await _parts.read(record, partial(_listed, ctx))
    except KeyError:  # It is being deleted.
        return None
    part = types.Part.model_validate_json(head)
    if part.inline_data is not None:
        part.inline_data.data = data
    return None if part == types.Part(inline_data=REMOVED) else part


async def _find(ctx: _client.Client, *, file: _File, version: int | None) -> _records.Record | None:
    if version is None:
        return await _newest(ctx, file)
    try:
        return await ctx.memory.get(key=file.key(version))
    except _errors.RecordNotFoundError:
        return None


async def _newest(ctx: _client.Client, file: _File) -> _records.Record | None:
    """Return the newest version: each is saved when the one before is there."""
    async for record in _listed(ctx, file.filter, newest=True):
        return record
    return None


def _listed(
    ctx: _client.Client, expression: str, *, newest: bool = False
) -> AsyncIterator[_records.Record]:
    listing = ctx.memory.list(
        filter=expression, newest_first=newest, page_size=1 if newest else None
    )
    return aiter(listing)


def _about(record: _records.Record) -> dict[str, Any]:
    return record.metadata["artifact"]


def _number(record: _records.Record) -> int:
    return int(_about(record)["version"])


def _version(file: _File, record: _records.Record) -> ArtifactVersion:
    about = _about(record)
    return ArtifactVersion(
        version=_number(record),
        canonical_uri=file.address(_number(record)),
        custom_metadata=about["custom"],
        create_time=record.create_time.timestamp(),
        mime_type=about["mime"],
    )
