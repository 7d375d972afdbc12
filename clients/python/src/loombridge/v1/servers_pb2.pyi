from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class McpServerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MCP_SERVER_STATE_UNSPECIFIED: _ClassVar[McpServerState]
    MCP_SERVER_STATE_CONNECTING: _ClassVar[McpServerState]
    MCP_SERVER_STATE_READY: _ClassVar[McpServerState]
    MCP_SERVER_STATE_AWAY: _ClassVar[McpServerState]
MCP_SERVER_STATE_UNSPECIFIED: McpServerState
MCP_SERVER_STATE_CONNECTING: McpServerState
MCP_SERVER_STATE_READY: McpServerState
MCP_SERVER_STATE_AWAY: McpServerState

class McpServerDefinition(_message.Message):
    __slots__ = ("name", "command", "args", "env", "cwd", "url", "headers", "protocol_version")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    command: str
    args: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.ScalarMap[str, str]
    cwd: str
    url: str
    headers: _containers.ScalarMap[str, str]
    protocol_version: str
    def __init__(self, name: _Optional[str] = ..., command: _Optional[str] = ..., args: _Optional[_Iterable[str]] = ..., env: _Optional[_Mapping[str, str]] = ..., cwd: _Optional[str] = ..., url: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., protocol_version: _Optional[str] = ...) -> None: ...

class McpServer(_message.Message):
    __slots__ = ("definition", "configured", "state", "problem", "tools", "tokens", "changed")
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    CONFIGURED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    definition: McpServerDefinition
    configured: bool
    state: McpServerState
    problem: str
    tools: int
    tokens: int
    changed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, definition: _Optional[_Union[McpServerDefinition, _Mapping]] = ..., configured: bool = ..., state: _Optional[_Union[McpServerState, str]] = ..., problem: _Optional[str] = ..., tools: _Optional[int] = ..., tokens: _Optional[int] = ..., changed: _Optional[_Iterable[str]] = ...) -> None: ...

class ListMcpServersRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListMcpServersResponse(_message.Message):
    __slots__ = ("servers", "next_page_token")
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    servers: _containers.RepeatedCompositeFieldContainer[McpServer]
    next_page_token: str
    def __init__(self, servers: _Optional[_Iterable[_Union[McpServer, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RemoveMcpServerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RemoveMcpServerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ConnectMcpServerRequest(_message.Message):
    __slots__ = ("definition", "name", "accept_changed")
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    definition: McpServerDefinition
    name: str
    accept_changed: bool
    def __init__(self, definition: _Optional[_Union[McpServerDefinition, _Mapping]] = ..., name: _Optional[str] = ..., accept_changed: bool = ...) -> None: ...
