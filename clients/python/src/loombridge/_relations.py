"""How records of a memory are related to each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from loombridge import _records, _rpc, _values
from loombridge.v1 import memory_pb2 as pb

RelationDirection: TypeAlias = Literal["out", "in"]
"""Relations that go out from a record, or that come to it."""

_DIRECTION = pb.RelationDirection.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from one record to another of the same memory."""

    from_id: str
    """The record that it goes out from."""
    name: str
    """How that is related to the other, such as `prefers` or `part_of`: 1 to 64 letters,
    digits, `_`, `-`, `.` and `:`, beginning with a letter."""
    to_id: str
    """The other record."""
    create_time: datetime | None = None
    """When it was made, in UTC."""


@dataclass(frozen=True, slots=True)
class Related:
    """Which records come along with the hits of a query because they are related to them."""

    direction: RelationDirection | None = None
    """The relations of the hits that count; None: both."""
    names: tuple[str, ...] = ()
    """The names that count, at most 16; empty: all."""
    limit: int = 5
    """How many records come along at most, up to 50."""


class Relations:
    """How records are related, as a part of `ctx.memory`."""

    _transport: _rpc.Transport
    _agent_id: str

    def _at(self, space_id: str | None) -> _rpc.Transport:
        """Return the transport for requests about a space, if there is one."""
        if space_id is None:
            return self._transport
        return self._transport.within(_values.text("space_id", space_id))

    async def relate(
        self,
        from_id: _records.RecordName,
        name: str,
        to_id: _records.RecordName,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> bool:
        """Relate a record to another, as in `relate(ann, "prefers", oat_milk)`.

        It goes with either of the two. Queries with `related=` also return records related to
        their hits. The records keep their text, version and times.

        Args:
            from_id: the record that the relation goes out from, by id or as it was saved or read.
            name: how it is related: 1 to 64 letters, digits, `_`, `-`, `.` and `:`.
            to_id: the other record of the same memory, likewise.
            user_id: in that person's memory instead of the agent's.
            space_id: in the memory of that space instead; see `ctx.spaces`.
            request_id: makes the call safe to repeat.
            timeout: seconds; default: the client's.

        Returns:
            Whether it was not there before.

        Raises:
            RecordNotFoundError: one of the two is not there.
            QuotaExceededError: 256 go out from the one, or 1,024 come to the other.
            AgentNotOwnedError: another agent saved the first one, in a shared memory.
        """
        made = await self.relate_many(
            [_between(from_id, name, to_id)],
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )
        return made > 0

    async def relate_many(
        self,
        relations: Iterable[Relation],
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> int:
        """Make relations, at most 100, in one commit; return how many are new.

        Raises:
            RecordNotFoundError: one of the records is not there; nothing was made.
            QuotaExceededError: a record has as many relations as it may have.
            AgentNotOwnedError: another agent saved a record that one goes out from.
        """
        request = pb.RelateRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            relations=_wire(relations),
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._at(space_id).call(
            _rpc.RELATE_RECORDS, request, timeout=timeout, repeatable=bool(request_id)
        )
        return answer.created

    async def unrelate(
        self,
        from_id: _records.RecordName,
        name: str,
        to_id: _records.RecordName,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> bool:
        """End a relation; return whether it was there.

        Raises:
            AgentNotOwnedError: another agent saved the record that it goes out from.
        """
        request = pb.UnrelateRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            relations=_wire([_between(from_id, name, to_id)]),
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._at(space_id).call(
            _rpc.UNRELATE_RECORDS, request, timeout=timeout, repeatable=bool(request_id)
        )
        return answer.deleted > 0

    async def relations(
        self,
        *,
        id: str | None = None,  # noqa: A002  the record's own word
        key: str | None = None,
        direction: RelationDirection | None = None,
        names: Iterable[str] = (),
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[Relation, ...]:
        """Return how a record is related: what goes out from it first, each by name.

        Args:
            id: the record's id.
            key: the caller's own name for it; give exactly one of the two.
            direction: `out` for relations from it, `in` for relations to it; default: both.
            names: the wanted names, at most 16; default: all.
            user_id: look in that person's memory instead of the agent's.
            space_id: look in the memory of that space instead; see `ctx.spaces`.
            timeout: seconds; default: the client's.

        Raises:
            RecordNotFoundError: there is no such record, or it has expired.
        """
        request = pb.ListRelationsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            direction=_direction(direction),
            names=_values.texts("names", names),
        )
        _records.name(request, id, key)
        found = await self._at(space_id).items(
            _rpc.LIST_RELATIONS, request, lambda answer: answer.relations, timeout
        )
        return tuple(
            Relation(r.from_id, r.name, r.to_id, _values.moment(r.create_time)) for r in found
        )


def options(value: object) -> pb.RelatedOptions:
    """Return what of `related=` goes over the wire: True, a `Related` or its fields."""
    if value is True:
        value = Related()
    if isinstance(value, Mapping):
        value = Related(**cast("Mapping[str, Any]", value))
    if not isinstance(value, Related):
        raise TypeError("related must be True, a Related or a mapping of its fields")
    return pb.RelatedOptions(
        direction=_direction(value.direction),
        names=_values.texts("names", value.names),
        limit=_values.integer("limit", value.limit),
    )


def _direction(value: RelationDirection | None) -> pb.RelationDirection:
    if value is None:
        return pb.RELATION_DIRECTION_UNSPECIFIED
    number = _values.enum_number("direction", _DIRECTION, "RELATION_DIRECTION_", value)
    return cast("pb.RelationDirection", number)


def _between(one: _records.RecordName, name: str, other: _records.RecordName) -> Relation:
    return Relation(_records.id_of("from_id", one), name, _records.id_of("to_id", other))


def _wire(relations: Iterable[Relation]) -> list[pb.Relation]:
    return [
        pb.Relation(
            from_id=_values.text("from_id", r.from_id),
            name=_values.text("name", r.name),
            to_id=_values.text("to_id", r.to_id),
        )
        for r in relations
    ]
