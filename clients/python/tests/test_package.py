"""The package as users meet it: names, documentation, what an import needs."""

import dataclasses
import importlib.metadata
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loombridge
from loombridge import testing

SOURCE = Path(loombridge.__file__).parent
"""The package that is tested, which may be an installed wheel."""

PROJECT = Path(__file__).parents[1]
"""What the package is built from."""


def public_members() -> Iterator[tuple[str, Any]]:
    for name in loombridge.__all__:
        thing = getattr(loombridge, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        for attribute, value in _members(thing).items():
            if not attribute.startswith("_") and (inspect.isfunction(value) or _has_doc(value)):
                yield f"{name}.{attribute}", value


def _members(thing: object) -> dict[str, Any]:
    """Return what a class has, and what it inherits from others of the package."""
    bases = thing.__mro__ if inspect.isclass(thing) else ()
    ours = [base for base in reversed(bases) if base.__module__.startswith("loombridge")]
    return {name: value for base in ours for name, value in vars(base).items()}


def _has_doc(value: object) -> bool:
    return isinstance(value, property | classmethod)


@pytest.mark.parametrize(("name", "thing"), public_members())
def test_every_public_name_is_documented(name: str, thing: Any) -> None:
    assert (thing.__doc__ or "").strip(), name
    # A dataclass without a docstring gets its signature as one.
    assert not (thing.__doc__ or "").startswith(f"{name}("), name


def test_every_field_is_documented() -> None:
    for name in loombridge.__all__:
        thing = getattr(loombridge, name)
        if not dataclasses.is_dataclass(thing):
            continue
        source = inspect.getsource(thing) if inspect.isclass(thing) else ""
        for field in dataclasses.fields(thing):
            documented = re.search(rf'^    {field.name}: [^\n]*\n    """', source, re.MULTILINE)
            assert documented, f"{name}.{field.name}"


def test_dataclasses_are_frozen() -> None:
    kinds = [getattr(loombridge, name) for name in loombridge.__all__]
    frozen = [kind for kind in kinds if dataclasses.is_dataclass(kind)]
    assert len(frozen) > 15
    for kind in frozen:
        params: Any = vars(kind)["__dataclass_params__"]
        assert params.frozen, kind


def test_all_is_sorted_and_complete() -> None:
    assert list(loombridge.__all__) == sorted(loombridge.__all__)
    imported = {
        name
        for name, value in vars(loombridge).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert imported == set(loombridge.__all__)


def test_the_version_is_that_of_the_package() -> None:
    assert loombridge.__version__ == importlib.metadata.version("loombridge")
    assert re.fullmatch(r"\d+\.\d+\.\d+", loombridge.__version__)


def test_types_are_shipped() -> None:
    assert (SOURCE / "py.typed").exists()


def run_python(code: str) -> str:
    """Run code in a new interpreter, warnings as errors; return what it prints."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=SOURCE.parent,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def test_an_import_needs_only_what_is_declared() -> None:
    printed = run_python(
        "import sys; before = set(sys.modules);"
        "import loombridge, loombridge.testing;"
        "roots = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(*sorted(roots - sys.stdlib_module_names))"
    )
    # grpcio itself looks for grpc_tools, and brings typing_extensions and Cython's own.
    allowed = {"google", "grpc", "grpc_status", "grpc_tools", "loombridge", "typing_extensions"}
    assert {name for name in printed.split() if "cython" not in name} <= allowed


def test_generated_stubs_import_with_grpcio_and_protobuf_alone() -> None:
    stubs = sorted(path.stem for path in (SOURCE / "v1").glob("*_pb2*.py"))
    assert len(stubs) > 10
    run_python(
        "import importlib, sys, types;"
        "bare = types.ModuleType('loombridge'); bare.__path__ = ['loombridge'];"
        "sys.modules['loombridge'] = bare;"
        "sys.modules.update(dict.fromkeys(['grpc_status', 'google.rpc', 'google.api']));"
        f"[importlib.import_module('loombridge.v1.' + name) for name in {stubs}]"
    )


def test_the_binary_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(folder: str) -> Path:
        path = tmp_path / folder / testing.BINARY_NAME
        path.parent.mkdir()
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    given, named, found = program("given"), program("named"), program("path")
    monkeypatch.setenv(testing.BINARY_VARIABLE, str(named))
    monkeypatch.setenv("PATH", str(found.parent))
    assert testing.find_binary(given) == given
    assert testing.find_binary() == named
    monkeypatch.delenv(testing.BINARY_VARIABLE)
    assert testing.find_binary() == found
    with pytest.raises(testing.ServerError, match="is no program"):
        testing.find_binary(tmp_path / "nothing")


async def test_a_server_that_ends_at_once_shows_its_log(tmp_path: Path) -> None:
    broken = tmp_path / "server"
    broken.write_text("#!/bin/sh\necho the disk is upside down >&2\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(testing.ServerError, match=r"(?s)code 3.*upside down"):
        async with testing.server(broken):
            pass


def test_a_python_that_is_too_old_is_told_which_one_is_needed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.version_info = (3, 9, 18); import build_backend;"
        f"print(build_backend.prepare_metadata_for_build_wheel({str(tmp_path)!r}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
    )
    metadata = (tmp_path / run.stdout.strip() / "METADATA").read_text()
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert f"Requires-Python: {declared['requires-python']}\n" in metadata
    assert f"Name: {declared['name']}\n" in metadata


def test_the_table_of_frameworks_has_the_versions_that_are_tested() -> None:
    """Each from the version that is declared, which the oldest environment has, to the newest."""
    rows = re.findall(
        r"\| ([a-z-]+) ([\d.]+)(?: to ([\d.]+))? \|$", (PROJECT / "README.md").read_text(), re.M
    )
    promised = {name: (lowest, highest or lowest) for name, lowest, highest in rows}
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    declared: dict[str, str] = {}
    for extra, requirements in project["optional-dependencies"].items():
        if requirements and extra != "server":
            name, lowest = requirements[0].split(">=")
            declared[name.removesuffix("-slim")] = lowest
    assert {name: lowest for name, (lowest, _) in promised.items()} == declared
    pins: dict[str, list[str]] = {name: [] for name in declared}
    for which in ("dev", "frameworks", "oldest"):
        text = (PROJECT / f"requirements-{which}.txt").read_text()
        for name, pin in re.findall(r"^([\w-]+)==([\d.]+)$", text, re.M):
            pins.setdefault(name.removesuffix("-slim"), []).append(pin)
    assert not pins.pop("crewai"), "only its storage's two types are here, in tests/frameworks"
    for name, (lowest, highest) in promised.items():
        for pin, said in zip(pins.get(name, []), (highest, lowest), strict=False):
            assert f"{pin}.".startswith(f"{said}."), name
        assert name == "crewai" or len(pins[name]) == 1 + (lowest != highest), name
