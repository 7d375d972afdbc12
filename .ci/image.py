"""Writes a container image without a daemon.

The file is an OCI image layout, packed, and has what `docker load` reads as well. The same
files give the same bytes.
"""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def add(archive: tarfile.TarFile, name: str, data: bytes, epoch: int, mode: int = 0o644) -> None:
    """Add a file of root's."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), mode, epoch
    archive.addfile(entry, io.BytesIO(data))


def layer(files: dict[str, Path], epoch: int) -> bytes:
    """Return an archive of files, by their names in the image; those keep whether they run."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, file in sorted(files.items()):
            add(
                archive, name, file.read_bytes(), epoch, 0o755 if file.stat().st_mode & 1 else 0o644
            )
    return out.getvalue()


def packed(data: bytes) -> bytes:
    """Return the same bytes for the same data, compressed."""
    return gzip.compress(data, 6, mtime=0)


def digest(data: bytes) -> str:
    """Return a digest as OCI writes it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def write(
    target: Path,
    layers: list[bytes],
    run: dict[str, object],
    platform: dict[str, str],
    names: list[str],
    stamp: tuple[int, str],
) -> None:
    """Write an image.

    Args:
        target: The file.
        layers: Archives, lowest first.
        run: How it starts, as "config" of OCI's image configuration.
        platform: Its "os" and "architecture".
        names: By which `docker load` knows it; the first one is the layout's.
        stamp: When it was made, as a number and as text.
    """
    epoch, made = stamp
    blobs: dict[str, bytes] = {}

    def blob(kind: str, data: bytes) -> dict[str, object]:
        blobs[digest(data)] = data
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}

    def text(value: object) -> bytes:
        return json.dumps(value, sort_keys=True).encode()

    stored = [blob(LAYER, packed(one)) for one in layers]
    about = platform | {
        "created": made,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [digest(one) for one in layers]},
        "history": [{"created": made, "created_by": "loom-bridge .ci/image.py"} for _ in layers],
    }
    config = blob(CONFIG, text(about))
    content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": stored}
    manifest = blob(MANIFEST, text(content))
    manifest["platform"] = platform
    manifest["annotations"] = {
        "org.opencontainers.image.ref.name": names[0].partition(":")[2],
        "io.containerd.image.name": f"docker.io/library/{names[0]}",
    }

    def path(one: dict[str, object]) -> str:
        return "blobs/" + str(one["digest"]).replace(":", "/")

    old = [{"Config": path(config), "RepoTags": names, "Layers": [path(one) for one in stored]}]
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        add(archive, "oci-layout", text({"imageLayoutVersion": "1.0.0"}), epoch)
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]}
        add(archive, "index.json", text(index), epoch)
        add(archive, "manifest.json", text(old), epoch)
        for name, data in sorted(blobs.items()):
            add(archive, "blobs/" + name.replace(":", "/"), data, epoch)
