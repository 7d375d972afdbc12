"""Write the OpenAPI description of the calls that are served over HTTP.

The paths are those of proto/loombridge/v1/rest.json, the schemas protobuf's own JSON, the
descriptions the comments of the protos.

Usage: openapi.py DESCRIPTORS RULES >openapi.json

DESCRIPTORS is a FileDescriptorSet with imports and source information.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

Field = descriptor_pb2.FieldDescriptorProto
Schema = dict[str, Any]

INT64 = {"type": ["string", "integer"], "format": "int64"}
NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
SCALARS: dict[int, Schema] = {
    Field.TYPE_DOUBLE: NUMBER,
    Field.TYPE_FLOAT: NUMBER,
    Field.TYPE_INT64: INT64,
    Field.TYPE_UINT64: INT64,
    Field.TYPE_INT32: {"type": "integer", "format": "int32"},
    Field.TYPE_UINT32: {"type": "integer", "minimum": 0},
    Field.TYPE_BOOL: {"type": "boolean"},
    Field.TYPE_STRING: {"type": "string"},
    Field.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
KNOWN: dict[str, Schema] = {
    ".google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    ".google.protobuf.Duration": {
        "type": "string",
        "pattern": r"^-?[0-9]+(\.[0-9]{1,9})?s$",
        "examples": ["1.5s"],
    },
    ".google.protobuf.FieldMask": {
        "type": "string",
        "description": "Names of fields in lowerCamelCase, with commas between.",
    },
    ".google.protobuf.Struct": {"type": "object"},
    ".google.protobuf.ListValue": {"type": "array"},
    ".google.protobuf.Value": {},
}
STATUS: Schema = {
    "type": "object",
    "description": "A google.rpc.Status. `details` has a google.rpc.ErrorInfo with the reason, "
    "and where fields are wrong a google.rpc.BadRequest with each of them.",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "integer", "description": "A code of gRPC."},
        "message": {"type": "string", "description": "What is wrong, and what to do."},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["@type"],
                "properties": {"@type": {"type": "string"}},
            },
        },
    },
}
INFO = {
    "title": "Loom Bridge",
    "version": "v1",
    "description": "The calls of loombridge.v1 as JSON over HTTP: all but Attach, UploadStep and "
    "Import, which take several messages from the client. A field may be written in lowerCamelCase "
    "or as in the protos; one that does not exist is refused. Integers of 64 bits come as text. "
    "As everywhere in protobuf's JSON, null is the same as nothing, and a value of an enum may be "
    "its number. An id in a path is percent-encoded. A stream is lines of JSON, or with `Accept: "
    "text/event-stream` server-sent events, which `Last-Event-ID` resumes where they have ids.",
}
HEADERS = {
    "Loom-Agent-Id": "The agent_id of a request that leaves it empty.",
    "Loom-Session-Id": "The session_id of a request that leaves it empty.",
    "Loom-Json": "`text`: JSON in answers comes as text, in the fields that end in Json.",
    "Grpc-Timeout": "How long the call may take, such as 10S, or 500m for milliseconds.",
}


class Protos:
    """The messages, enums and services of the files, and their comments."""

    def __init__(self, files: descriptor_pb2.FileDescriptorSet) -> None:
        """Index what the files declare."""
        self.comments: dict[str, str] = {}
        self.types: dict[str, Any] = {}
        self.services: list[tuple[str, Any]] = []
        for file in files.file:
            notes = {
                tuple(at.path): clean(at.leading_comments) for at in file.source_code_info.location
            }
            package = f".{file.package}"
            for i, message in enumerate(file.message_type):
                self.add_message(f"{package}.{message.name}", message, (4, i), notes)
            for i, enum in enumerate(file.enum_type):
                self.add_enum(f"{package}.{enum.name}", enum, (5, i), notes)
            for i, service in enumerate(file.service):
                name = f"{package}.{service.name}"
                self.services.append((name, service))
                self.comments[name] = notes.get((6, i), "")
                for j, method in enumerate(service.method):
                    self.comments[f"{name}.{method.name}"] = notes.get((6, i, 2, j), "")

    def add_message(
        self, name: str, message: Any, path: tuple[int, ...], notes: dict[Any, str]
    ) -> None:
        """Index a message with what it declares."""
        self.types[name] = message
        self.comments[name] = notes.get(path, "")
        for i, field in enumerate(message.field):
            self.comments[f"{name}.{field.name}"] = notes.get((*path, 2, i), "")
        for i, group in enumerate(message.oneof_decl):
            self.comments[f"{name}.{group.name}"] = notes.get((*path, 8, i), "")
        for i, inner in enumerate(message.nested_type):
            self.add_message(f"{name}.{inner.name}", inner, (*path, 3, i), notes)
        for i, enum in enumerate(message.enum_type):
            self.add_enum(f"{name}.{enum.name}", enum, (*path, 4, i), notes)

    def add_enum(self, name: str, enum: Any, path: tuple[int, ...], notes: dict[Any, str]) -> None:
        """Index an enum with its values."""
        self.types[name] = enum
        self.comments[name] = notes.get(path, "")
        for i, value in enumerate(enum.value):
            self.comments[f"{name}.{value.name}"] = notes.get((*path, 2, i), "")


def clean(comment: str) -> str:
    """Return a comment without its indentation and line ends; paragraphs stay."""
    lines = [line.strip() for line in comment.strip().split("\n")]
    return re.sub(r"(?<!\n)\n(?!\n)", " ", "\n".join(lines))


def short(name: str) -> str:
    """Return the name of a schema: that of the message within its package."""
    return name.removeprefix(".loombridge.v1.")


class Description:
    """The description, as far as it is written."""

    def __init__(self, protos: Protos) -> None:
        """Begin with the schema of errors."""
        self.protos = protos
        self.schemas: dict[str, Schema] = {"Status": STATUS}

    def one(self, field: Any) -> Schema:
        """Return the schema of one value of a field."""
        if field.type in SCALARS:
            return dict(SCALARS[field.type])
        if field.type_name in KNOWN:
            return dict(KNOWN[field.type_name])
        self.add(field.type_name)
        return {"$ref": f"#/components/schemas/{short(field.type_name)}"}

    def field(self, owner: str, field: Any) -> Schema:
        """Return the schema of a field with its comment."""
        repeated = field.label == Field.LABEL_REPEATED
        entry = self.protos.types.get(field.type_name)
        if (
            repeated
            and entry is not None
            and field.type == Field.TYPE_MESSAGE
            and entry.options.map_entry
        ):
            schema: Schema = {
                "type": "object",
                "additionalProperties": self.one(entry.field[1]),
            }
        elif repeated:
            schema = {"type": "array", "items": self.one(field)}
        else:
            schema = self.one(field)
        comment = self.protos.comments.get(f"{owner}.{field.name}", "")
        if field.HasField("oneof_index") and not field.proto3_optional:
            group = self.protos.types[owner].oneof_decl[field.oneof_index].name
            needed = "Required." in self.protos.comments.get(f"{owner}.{group}", "")
            rule = (
                "Exactly one of {} must be given." if needed else "At most one of {} may be given."
            )
            comment = f"{comment} {rule.format(group)}".strip()
        if comment:
            schema["description"] = comment
        return schema

    def add(self, name: str) -> None:
        """Add the schema of a message or enum, and of what it holds."""
        if short(name) in self.schemas:
            return
        declared = self.protos.types[name]
        schema: Schema = {"description": self.protos.comments[name]}
        self.schemas[short(name)] = schema
        if isinstance(declared, descriptor_pb2.EnumDescriptorProto):
            schema["type"] = "string"
            schema["enum"] = [value.name for value in declared.value]
            notes = [self.protos.comments[f"{name}.{value.name}"] for value in declared.value]
            schema["description"] += "\n\n" + "\n".join(f"- {note}" for note in notes if note)
            return
        schema["type"] = "object"
        schema["additionalProperties"] = False
        schema["properties"] = {f.json_name: self.field(name, f) for f in declared.field}

    def needs(self, owner: str, field: Any) -> bool:
        """Report whether a request is refused without a field; agent_id may come as a header."""
        comment = self.protos.comments.get(f"{owner}.{field.name}", "")
        needed = re.search(r"\bRequired(\.|, (at most|1 ))", comment)
        return field.name != "agent_id" and needed is not None

    def parameters(self, owner: str, path: str, body: bool) -> Iterator[Schema]:
        """Yield the parameters of a call."""
        for field in self.protos.types[owner].field:
            inside = f"{{{field.name}}}" in path
            if body and not inside:
                continue
            schema = self.field(owner, field)
            parameter: Schema = {
                "name": field.name,
                "in": "path" if inside else "query",
                "description": schema.pop("description", ""),
            }
            if inside:
                schema["minLength"] = 1
            if inside or self.needs(owner, field):
                parameter["required"] = True
            ours = field.type == Field.TYPE_MESSAGE and field.type_name not in KNOWN
            if ours and "items" in schema:
                schema["items"] = {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": schema["items"],
                }
            elif ours:
                schema = {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": schema,
                }
            parameter["schema"] = schema
            yield parameter
        for name in HEADERS:
            yield {"$ref": f"#/components/parameters/{name}"}

    def answer(self, method: Any) -> Schema:
        """Return the answer of a call that succeeds."""
        self.add(method.output_type)
        result: Schema = {"$ref": f"#/components/schemas/{short(method.output_type)}"}
        if not method.server_streaming:
            return {
                "description": "OK",
                "content": {"application/json": {"schema": result}},
            }
        error = {"$ref": "#/components/schemas/Status"}
        line = {"type": "object", "properties": {"result": result, "error": error}}
        return {
            "description": "The messages of the stream, as they come.",
            "content": {
                "application/x-ndjson": {"schema": line},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        }

    def operation(self, service: str, method: Any, path: str, body: bool) -> Schema:
        """Return one way to make a call."""
        comment = self.protos.comments[f"{service}.{method.name}"]
        operation: Schema = {
            "operationId": method.name,
            "tags": [short(service)],
            "summary": re.split(r"(?<=[.:]) |\n", comment, maxsplit=1)[0],
            "description": comment,
            "parameters": list(self.parameters(method.input_type, path, body)),
        }
        if body:
            self.add(method.input_type)
            fields = self.protos.types[method.input_type].field
            inside = [f for f in fields if f"{{{f.name}}}" not in path]
            if needed := [f.json_name for f in inside if self.needs(method.input_type, f)]:
                self.schemas[short(method.input_type)]["required"] = needed
            schema = {"$ref": f"#/components/schemas/{short(method.input_type)}"}
            operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        error = {"$ref": "#/components/responses/Error"}
        operation["responses"] = {"200": self.answer(method), "default": error}
        return operation


def describe(files: descriptor_pb2.FileDescriptorSet, rules: list[Any]) -> Schema:
    """Return the whole description."""
    protos = Protos(files)
    methods = {
        f"{service}.{method.name}": (service, method)
        for service, declared in protos.services
        for method in declared.method
    }
    description, paths, tags = Description(protos), {}, {}
    for rule in rules:
        service, method = methods[f".{rule['selector']}"]
        tags[short(service)] = protos.comments[service]
        for n, way in enumerate([rule, *rule.get("additional_bindings", [])]):
            verb = next(v for v in ("get", "post", "patch", "delete") if v in way)
            operation = description.operation(service, method, way[verb], "body" in way)
            if n:
                operation["operationId"] += f"By{verb.title()}{n}"
            paths.setdefault(way[verb], {})[verb] = operation
    error = {"schema": {"$ref": "#/components/schemas/Status"}}
    return {
        "openapi": "3.1.0",
        "info": INFO,
        "tags": [{"name": name, "description": text} for name, text in tags.items()],
        "security": [{}, {"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "parameters": {
                name: {
                    "name": name,
                    "in": "header",
                    "description": text,
                    "schema": {"type": "string"},
                }
                for name, text in HEADERS.items()
            },
            "responses": {
                "Error": {
                    "description": "What went wrong.",
                    "content": {"application/json": error},
                }
            },
            "schemas": dict(sorted(description.schemas.items())),
        },
    }


def main() -> None:
    """Read the files, write the description."""
    descriptors, rules = (Path(name) for name in sys.argv[1:3])
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())
    written = json.loads(rules.read_text(encoding="utf-8"))["http"]["rules"]
    print(json.dumps(describe(files, written), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
