"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from loombridge import _events, _progress, _values
from loombridge.sync import _twin
from loombridge.sync._face.held import Subscription


@_twin.documented(_events.Events)
class Events(_twin.Twin):
    """Listening to events; reached as `ctx.events`. Publishing is `ctx.emit`."""

    def subscribe(
        self,
        topics: str | Mapping[str, int | None],
        *,
        since: datetime | None = None,
        qos: _progress.QualityOfService | None = None,
        event_types: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        session_id: str | None = None,
        reconnect: bool = True,
        timeout: _values.Seconds | None = None,
    ) -> Subscription:
        """Listen to one topic, or to several with the places to begin at."""
        return Subscription(
            self._home,
            self._run(
                "subscribe",
                topics,
                since=since,
                qos=qos,
                event_types=event_types,
                headers=headers,
                session_id=session_id,
                reconnect=reconnect,
                timeout=timeout,
            ),
        )
