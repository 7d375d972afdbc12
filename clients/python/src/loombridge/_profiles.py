"""Profiles: what the calls of a tool may do."""

from dataclasses import dataclass
from datetime import timedelta

from google.protobuf import json_format

from loombridge import _brief
from loombridge.v1 import tools_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class HostRule(_brief.Brief):
    """A rule about requests to hosts."""

    host: str
    """A name, or `*.` and the end of names."""
    ports: tuple[int, ...]
    """Those that can be reached; none named: 80 and 443."""
    paths: tuple[str, ...]
    """Beginnings of paths that may be asked for; none named: all."""
    methods: tuple[str, ...]
    """Those that may be used; none named: all."""
    secret_variable: str
    """The variable in which programs find what stands for a secret; empty for none."""
    address: str
    """Where to connect to in place of what the name leads to; empty: there, if it is public."""


@dataclass(frozen=True, slots=True, repr=False)
class ProgramLimits(_brief.Brief):
    """What one program may take; sizes in bytes."""

    cpu: timedelta
    """Time of one process."""
    wall: timedelta | None
    """How long it may run; None: as long as its call."""
    memory: int
    """Of all processes."""
    processes: int
    """How many there may be."""
    file: int
    """The longest file that it may write."""
    scratch: int
    """Temporary files."""
    disk_floor: int
    """What stays free on the disk of the workspace."""
    open_files: int
    """Of one process."""
    output: int
    """Of stdout and stderr together."""


@dataclass(frozen=True, slots=True, repr=False)
class RefusedKey(_brief.Brief):
    """A key of a workspace's file that would give more; it changes nothing."""

    key: str
    """The key."""
    line: int
    """Where it stands, from 1."""
    reason: str
    """What it would have given."""


@dataclass(frozen=True, slots=True, repr=False)
class ToolProfile(_brief.Brief):
    """What the calls of a tool may do."""

    name: str
    """The name of the profile, as audit records have it."""
    mode: str
    """`read`, `work`, `net`, `open` or `off`."""
    approval: str
    """Which calls need a person: `never`, `on-leave`, `tool`, `always`, `level:1` to `level:3`."""
    read: tuple[str, ...]
    """Absolute paths outside of the workspace that can be read."""
    write: tuple[str, ...]
    """Absolute paths outside of the workspace that can be changed."""
    protect: tuple[str, ...]
    """Paths of the workspace that can't be changed."""
    hide: tuple[str, ...]
    """Paths of the workspace that can't be seen."""
    hosts: tuple[HostRule, ...]
    """The rules of mode net."""
    environment: tuple[str, ...]
    """Names of further variables of programs."""
    limits: ProgramLimits
    """What one program may take."""
    refused: tuple[RefusedKey, ...]
    """Keys of the workspace's `.loom/sandbox.toml` that were refused."""
    problem: str
    """Why that file can't be used; empty when it can. Until it is mended all calls of the
    server's own tools are denied."""


def profile(m: pb.ToolProfile) -> ToolProfile:
    """Return a profile as users see it."""
    p = json_format.MessageToDict(m.rules)
    limits: dict[str, float] = p.get("limits", {})
    wall = limits.get("wall")

    def number(name: str) -> int:
        return int(limits.get(name, 0))

    return ToolProfile(
        name=p.get("name", ""),
        mode=p.get("mode", ""),
        approval=p.get("approval", ""),
        read=tuple(p.get("read", ())),
        write=tuple(p.get("write", ())),
        protect=tuple(p.get("protect", ())),
        hide=tuple(p.get("hide", ())),
        hosts=tuple(
            HostRule(
                host=h.get("host", ""),
                ports=tuple(map(int, h.get("ports", ()))),
                paths=tuple(h.get("paths", ())),
                methods=tuple(h.get("methods", ())),
                secret_variable=h.get("secret_variable", ""),
                address=h.get("address", ""),
            )
            for h in p.get("hosts", ())
        ),
        environment=tuple(p.get("environment", ())),
        limits=ProgramLimits(
            cpu=timedelta(seconds=limits.get("cpu", 0)),
            wall=None if wall is None else timedelta(seconds=wall),
            memory=number("memory"),
            processes=number("processes"),
            file=number("file"),
            scratch=number("scratch"),
            disk_floor=number("disk_floor"),
            open_files=number("open_files"),
            output=number("output"),
        ),
        refused=tuple(RefusedKey(key=r.key, line=r.line, reason=r.reason) for r in m.refused),
        problem=m.problem,
    )
