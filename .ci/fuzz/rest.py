"""Send a server what its OpenAPI description allows and what it forbids, with schemathesis.

    rest.py SERVER [ARGUMENTS OF schemathesis run]   (.ci/fuzz/run starts it)

No answer may be an error of the server or other than described, and nothing that is forbidden
may be taken. The requests are the same each time; a longer search takes another --seed and more
--max-examples.
"""

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

AGENT, SESSION = "fuzz", "fuzz"
# Streams without an end are left out. The last check wants each request to be taken that has the
# right form, but there are rules that no schema says.
ARGUMENTS = (
    *("--phases", "coverage,fuzzing", "--max-examples", "4", "--seed", "1", "--no-shrink"),
    *("--continue-on-failure", "--exclude-path-regex", ":(watch|subscribe)$"),
    *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
    *("--warnings", "off", "--request-timeout", "60"),
)
HEADERS = {"Loom-Agent-Id": AGENT, "Loom-Session-Id": SESSION, "Grpc-Timeout": "60S"}


def ask(base: str, path: str, body: object = None) -> str:
    """Return the answer of a call."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"})  # noqa: S310  loopback
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  loopback
        return answer.read().decode()


@contextlib.contextmanager
def serving(binary: str, folder: Path) -> Iterator[str]:
    """Start a server with something in it, and yield where it serves HTTP."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        base = f"127.0.0.1:{s.getsockname()[1]}"
    workspace = folder / "workspace"
    workspace.mkdir()
    command = [binary, "--addr", "127.0.0.1:0", "--http-addr", base, "--embedder", "off"]
    command += ["--data-dir", str(folder / "store"), "--workspace", str(workspace)]
    command += ["--backup-dir", str(folder / "backups"), "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while True:
                with contextlib.suppress(urllib.error.URLError):
                    ask("http://" + base, "/readyz")
                    break
                if server.poll() is not None:
                    sys.exit("the server ended")
                time.sleep(0.1)
            me = {"agent_id": AGENT}
            for n in range(3):
                ask("http://" + base, "/v1/memories", {**me, "id": f"{n}", "text": f"Day {n}."})
            said = {"messages": [{"role": "ROLE_USER", "content": "Hello"}]}
            ask("http://" + base, f"/v1/sessions/{SESSION}/messages", {**me, **said})
            ask("http://" + base, f"/v1/sessions/{SESSION}/prompts", me)
            yield "http://" + base
        finally:
            server.terminate()


def widened(schema: Any) -> Any:
    """Return a schema with what protobuf's JSON takes, too: null for nothing, numbers of enums."""
    if isinstance(schema, list):
        return [widened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    wide = {key: widened(value) for key, value in schema.items()}
    if "properties" in wide:
        some = wide["properties"].items()
        wide["properties"] = {name: {"anyOf": [each, {"type": "null"}]} for name, each in some}
    if wide.get("type") == "string" and "enum" in wide:
        wide["type"], wide["anyOf"] = (
            ["string", "integer"],
            [{"enum": wide.pop("enum")}, {"type": "integer"}],
        )
    return wide


def main() -> None:
    """Start a server, and send it requests."""
    binary, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(binary, folder) as base:
            description = json.loads(ask(base, "/openapi.json"))
            for path in description["paths"].values():
                for operation in path.values():
                    for parameter in operation.get("parameters", ()):
                        # In a query a duration may be written as 5m, too.
                        parameter.get("schema", {}).pop("pattern", None)
            description["components"]["schemas"] = widened(description["components"]["schemas"])
            file = folder / "openapi.json"
            file.write_text(json.dumps(description))
            begin = "from schemathesis.cli import schemathesis; schemathesis()"
            command = [sys.executable, "-B", "-c", begin, "run", str(file)]
            command += ["--url", base, *ARGUMENTS, *more]
            for header, value in HEADERS.items():
                command += ["-H", f"{header}: {value}"]
            done = subprocess.run(command, cwd=folder, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
