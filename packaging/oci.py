#!/usr/bin/env python3
"""Makes an image of one layer from a folder, as an archive that podman, skopeo and docker load. Needs no daemon, no root.

    packaging/oci.py FOLDER VERSION EPOCH REVISION ARCHITECTURE LEVEL ARCHIVE

LEVEL is of compression. The same input gives the same bytes: files belong to root and are of EPOCH, in the order of their names.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

folder, version, epoch, revision, architecture, level, archive = sys.argv[1:]
folder, epoch, level = Path(folder), int(epoch), int(level)
created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def entry(name, mode):
    made = tarfile.TarInfo(name)
    made.mtime, made.mode = epoch, mode
    return made


def add(tar, name, data, mode=0o644):
    made = entry(name, mode)
    made.size = len(data)
    tar.addfile(made, io.BytesIO(data))


def add_folder(tar, name, mode=0o755):
    made = entry(name, mode)
    made.type = tarfile.DIRTYPE
    tar.addfile(made)


layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w", format=tarfile.GNU_FORMAT) as tar:
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            made = entry(name, 0o777)
            made.type, made.linkname = tarfile.SYMTYPE, str(path.readlink())
            tar.addfile(made)
        elif path.is_dir():
            # Whoever the container runs as: what is written below /tmp and /data is theirs.
            add_folder(tar, name, 0o1777 if name in ("tmp", "data") else 0o755)
        else:
            add(tar, name, path.read_bytes(), path.stat().st_mode & 0o755)
layer = layer.getvalue()
compressed = gzip.compress(layer, compresslevel=level, mtime=0)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


labels = {
    "org.opencontainers.image.created": created,
    "org.opencontainers.image.description": "A dynamometer for networks",
    "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    "org.opencontainers.image.revision": revision,
    "org.opencontainers.image.title": "netdyno",
    "org.opencontainers.image.version": version,
}
config = as_json(
    {
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": ["/usr/bin/netdyno"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"],
            "WorkingDir": "/data",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}"]},
        "history": [{"created": created, "created_by": "packaging/oci.py"}],
    }
)
manifest = as_json(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": f"sha256:{digest(config)}",
            "size": len(config),
        },
        "layers": [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": f"sha256:{digest(compressed)}",
                "size": len(compressed),
            }
        ],
        "annotations": labels,
    }
)
index = as_json(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": f"sha256:{digest(manifest)}",
                "size": len(manifest),
                "platform": {"architecture": architecture, "os": "linux"},
                "annotations": {
                    "org.opencontainers.image.ref.name": version,
                    # What containerd and newer docker name it by.
                    "io.containerd.image.name": f"localhost/netdyno:{version}",
                },
            }
        ],
    }
)
# For docker before 25, which knows its own form only; the files are the same.
docker = as_json(
    [
        {
            "Config": f"blobs/sha256/{digest(config)}",
            "RepoTags": [f"localhost/netdyno:{version}"],
            "Layers": [f"blobs/sha256/{digest(compressed)}"],
        }
    ]
)
with tarfile.open(archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
    add(tar, "oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
    add(tar, "index.json", index)
    add(tar, "manifest.json", docker)
    add_folder(tar, "blobs")
    add_folder(tar, "blobs/sha256")
    for blob in sorted((compressed, config, manifest), key=digest):
        add(tar, f"blobs/sha256/{digest(blob)}", blob)
