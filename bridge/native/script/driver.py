"""Runs one script for the server: a function of it, or all of it.

What to do comes as JSON on stdin. What the script writes goes where it always goes; what
came of it is written behind that to stdout, after a mark that nothing else writes.
"""

import sys

sys.path.pop(0)  # the current folder: nothing in it may pass for a module used here

import os  # noqa: E402


def run():
    import json

    spec = json.loads(sys.stdin.buffer.read())
    answer = os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    watch = Watch(spec["workspace"])
    try:
        reply = call(spec, watch)
    except BaseException as e:  # whatever a script raises is its answer
        reply = failed(e, spec)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    reply["reads"], reply["pure"] = sorted(watch.reads), watch.pure and len(watch.reads) <= spec["max_reads"]
    if not reply["pure"]:
        reply["reads"] = []
    data = (spec["mark"] + json.dumps(reply)).encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(answer, data) :]
    os._exit(0)


class Watch:
    """Notes what a script reads in the workspace, and whether it does anything but read."""

    PATHS = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime", "shutil.")
    OTHERS = ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill", "os.putenv", "pty.", "socket.", "ctypes.", "sqlite3.")

    def __init__(self, workspace):
        self.workspace, self.reads, self.pure = workspace, set(), True
        self.temporary = os.path.realpath(os.environ.get("TMPDIR", "/tmp"))
        self.on = False
        sys.addaudithook(self.hear)

    def hear(self, event, args):
        if not self.on:
            return
        if event == "open":
            self.opened(*args)
        elif event in ("os.listdir", "os.scandir"):
            caller = sys._getframe(1).f_code
            imports = caller.co_name == "_fill_cache" and "importlib" in caller.co_filename
            self.read("modules" if imports else "names", args[0] if args[0] is not None else ".")
        elif event.startswith(self.OTHERS):
            self.pure = False
        elif event.startswith(self.PATHS):
            self.written(args[0])

    def opened(self, path, mode, flags):
        if isinstance(path, int):
            return
        changes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        if flags & changes:
            self.written(path)
        else:
            self.read("file", path)

    def place(self, path):
        return os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else None

    def written(self, path):
        path = self.place(path)
        if path == os.devnull:
            return
        if path is None or self.inside(path) or not path.startswith(self.temporary + "/"):
            self.pure = False

    def inside(self, path):
        return path == self.workspace or path.startswith(self.workspace + "/")

    def read(self, kind, path):
        path = self.place(path)
        if path is None:
            self.pure = False
        elif self.inside(path):
            if len(self.reads) < 10_000:
                self.reads.add((kind, os.path.relpath(path, self.workspace)))


class Refused(Exception):
    """The call does not fit the script."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def call(spec, watch):
    import base64
    import importlib.util
    import linecache
    import types

    path, raw, args = spec["path"], base64.b64decode(spec["bytes"]), spec["args"]
    name = "__main__"
    if spec["function"]:
        name = os.path.splitext(os.path.basename(path))[0]
    try:
        source = importlib.util.decode_source(raw)
        linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    except (SyntaxError, UnicodeError):
        pass  # compiling it says so
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(path))
    sys.path.append(spec["workspace"])
    sys.argv = [path]
    if not spec["function"]:
        if isinstance(args, list):
            sys.argv += [a if isinstance(a, str) else json_of(a) for a in args]
        elif args:
            give_input(json_of(args))
    # The bytes, so that the script's own word for its encoding counts.
    code = compile(raw, path, "exec")
    watch.on = True
    exec(code, module.__dict__)
    if not spec["function"]:
        leave()
        return {"ok": True, "functions": functions(module)}
    result = called(module, spec["function"], args)
    watch.on = False
    return {"ok": True, "result": plain(result), "has_result": True}


def json_of(value):
    import json

    return json.dumps(value, ensure_ascii=False)


def give_input(text):
    import tempfile

    with tempfile.TemporaryFile() as f:
        f.write(text.encode())
        f.flush()
        os.dup2(f.fileno(), 0)
        os.lseek(0, 0, os.SEEK_SET)


def leave():
    import atexit
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()


def functions(module):
    """The names of the first functions that a script defines, and that others may call."""
    import inspect

    return sorted(n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__ and not n.startswith("_"))[:20]


def called(module, function, args):
    import inspect

    target = getattr(module, function, None)
    if not callable(target):
        raise Refused("function", "there is no function " + function + "; the script has " + (", ".join(functions(module)) or "none"))
    positional, named = (args, {}) if isinstance(args, list) else ([], args or {})
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        signature = None
    if signature is not None:
        try:
            signature.bind(*positional, **named)
        except TypeError as e:
            raise Refused("arguments", function + str(signature) + ": " + str(e)) from None
    result = target(*positional, **named)
    if inspect.isawaitable(result):
        import asyncio

        async def wait():
            return await result

        result = asyncio.run(wait())
    return result


def plain(value, depth=0):
    """A value as JSON has it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if depth > 60:
        raise Refused("result", "the result is nested deeper than 60 levels")
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise Refused("result", "the result holds " + repr(value) + ", which JSON does not have")
        return value
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(plain(k)): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, depth + 1) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v, depth + 1) for v in value), key=repr)
    import dataclasses

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, depth + 1)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    for method in ("isoformat", "tolist", "to_dict", "item"):  # dates, numpy, pandas
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return plain(getattr(value, method)(), depth + 1)
    if hasattr(value, "__next__"):
        import itertools

        return [plain(v, depth + 1) for v in itertools.islice(value, 100_000)]
    if type(value).__name__ == "Decimal":
        return str(value)
    raise Refused("result", "the result holds a " + type(value).__name__ + ", which is not JSON: return numbers, texts, lists and mappings")


def failed(e, spec):
    import traceback

    if isinstance(e, Refused):
        return {"ok": False, "kind": e.kind, "message": str(e)}
    if isinstance(e, SystemExit) and e.code in (None, 0):
        if not spec["function"]:
            leave()
        return {"ok": True}
    frames = e.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == "<string>":
        frames = frames.tb_next
    try:
        lines = "".join(traceback.format_exception(type(e), e, frames)).strip()
    except Exception:
        lines = type(e).__name__
    try:
        message = str(e)
    except Exception:
        message = ""
    return {"ok": False, "kind": "exception", "type": type(e).__name__, "message": message[:2000], "traceback": lines[-4000:]}


run()
