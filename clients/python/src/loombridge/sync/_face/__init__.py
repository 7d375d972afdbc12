"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from loombridge.sync._face.admin import Admin
from loombridge.sync._face.backups import Backups
from loombridge.sync._face.client import Client
from loombridge.sync._face.context import Context
from loombridge.sync._face.events import Events
from loombridge.sync._face.held import (
    BackingUp,
    BatchSaving,
    BlobListing,
    BlobSearch,
    BlobStream,
    Child,
    Erasing,
    Extracting,
    Job,
    Listener,
    RecordExport,
    RecordListing,
    RecordWatch,
    Reembedding,
    SessionExport,
    Spawning,
    Subscription,
)
from loombridge.sync._face.mcpservers import McpServers
from loombridge.sync._face.memory import Memory
from loombridge.sync._face.messages import Messages
from loombridge.sync._face.sessions import Sessions
from loombridge.sync._face.spacememory import SpaceMemory
from loombridge.sync._face.spaces import Spaces
from loombridge.sync._face.tools import Tools
from loombridge.sync._face.workingstate import WorkingState
from loombridge.sync._face.workspace import Workspace

__all__ = [
    "Admin",
    "BackingUp",
    "Backups",
    "BatchSaving",
    "BlobListing",
    "BlobSearch",
    "BlobStream",
    "Child",
    "Client",
    "Context",
    "Erasing",
    "Events",
    "Extracting",
    "Job",
    "Listener",
    "McpServers",
    "Memory",
    "Messages",
    "RecordExport",
    "RecordListing",
    "RecordWatch",
    "Reembedding",
    "SessionExport",
    "Sessions",
    "SpaceMemory",
    "Spaces",
    "Spawning",
    "Subscription",
    "Tools",
    "WorkingState",
    "Workspace",
]
