from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Effect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EFFECT_UNSPECIFIED: _ClassVar[Effect]
    EFFECT_READS: _ClassVar[Effect]
    EFFECT_STORES: _ClassVar[Effect]
    EFFECT_FREES: _ClassVar[Effect]
EFFECT_UNSPECIFIED: Effect
EFFECT_READS: Effect
EFFECT_STORES: Effect
EFFECT_FREES: Effect
SELECTS_FIELD_NUMBER: _ClassVar[int]
selects: _descriptor.FieldDescriptor
CONDUCT_FIELD_NUMBER: _ClassVar[int]
conduct: _descriptor.FieldDescriptor

class Conduct(_message.Message):
    __slots__ = ("effect", "works", "after_end", "asks_itself", "searches")
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    WORKS_FIELD_NUMBER: _ClassVar[int]
    AFTER_END_FIELD_NUMBER: _ClassVar[int]
    ASKS_ITSELF_FIELD_NUMBER: _ClassVar[int]
    SEARCHES_FIELD_NUMBER: _ClassVar[int]
    effect: Effect
    works: bool
    after_end: bool
    asks_itself: bool
    searches: bool
    def __init__(self, effect: _Optional[_Union[Effect, str]] = ..., works: bool = ..., after_end: bool = ..., asks_itself: bool = ..., searches: bool = ...) -> None: ...
