from loombridge.v1 import attach_pb2 as _attach_pb2
from loombridge.v1 import events_pb2 as _events_pb2
from loombridge.v1 import memory_pb2 as _memory_pb2
from loombridge.v1 import options_pb2 as _options_pb2
from loombridge.v1 import tools_pb2 as _tools_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
