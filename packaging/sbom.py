#!/usr/bin/env python3
"""What a binary is made of: a bill of materials (CycloneDX 1.5), and the licences of all that is compiled into it.

    cargo metadata ... | packaging/sbom.py BINARY VERSION EPOCH SBOM LICENCES [NAME=VERSION=LICENCE...]

Further words are C libraries that are linked into it. The same input gives the same bytes.
"""

import hashlib
import json
import re
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

binary, version, epoch, sbom, licences, *linked = sys.argv[1:]
metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = next(id for id, package in packages.items() if package["name"] == "netdyno-cli")


def is_compiler_plugin(id):
    return any("proc-macro" in target["kind"] for target in packages[id]["targets"])


def used(id):
    """What is linked into the program with a crate: neither what only builds or tests it, nor plugins of the compiler."""
    wanted = {
        dependency["pkg"]
        for dependency in nodes[id]["deps"]
        if any(kind["kind"] is None for kind in dependency["dep_kinds"])
    }
    return sorted((each for each in wanted if not is_compiler_plugin(each)), key=reference)


def reference(id):
    return f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"


reached, waiting = {root}, [root]
while waiting:
    for each in used(waiting.pop()):
        if each not in reached:
            reached.add(each)
            waiting.append(each)

lock = Path(metadata["workspace_root"], "Cargo.lock").read_text()
checksums = {
    (name, number): checksum
    for name, number, checksum in re.findall(
        r'name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"', lock
    )
}


def component(id):
    package = packages[id]
    made = {
        "type": "library",
        "bom-ref": reference(id),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(id),
    }
    if package["license"]:
        # Before there were expressions of SPDX, a stroke said "or".
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


libraries = []
for name, number, licence in (word.split("=") for word in linked):
    libraries.append(
        {
            "type": "library",
            "bom-ref": f"c:{name}@{number}",
            "name": name,
            "version": number,
            "licenses": [{"expression": licence}],
            "description": "linked statically, as the building system has it",
        }
    )

digest = hashlib.sha256(Path(binary).read_bytes()).hexdigest()
others = sorted(reached - {root}, key=reference)
bill = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'netdyno:{version}:{digest}')}",
    "version": 1,
    "metadata": {
        "timestamp": datetime.fromtimestamp(int(epoch), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "component": {
            "type": "application",
            "bom-ref": "netdyno",
            "name": "netdyno",
            "version": version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "hashes": [{"alg": "SHA-256", "content": digest}],
        },
    },
    "components": [component(id) for id in others] + libraries,
    "dependencies": [
        {
            "ref": "netdyno",
            "dependsOn": [reference(id) for id in used(root)] + [each["bom-ref"] for each in libraries],
        }
    ]
    + [{"ref": reference(id), "dependsOn": [reference(each) for each in used(id)]} for id in others],
}
Path(sbom).write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", encoding="utf-8")

# Licences ask that they go with copies of a program. Many crates have the same text: it stands once, below all who have it.
texts, without = {}, []
for id in others:
    package = packages[id]
    if package["source"] is None:
        continue
    folder = Path(package["manifest_path"]).parent
    found = sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and re.match(r"(?i)(licen[cs]e|copying|copyright|notice|unlicense)", path.name)
    )
    named = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
    if not found:
        without.append(named)
    for path in found:
        text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip("\n")
        texts.setdefault(text, []).append(named)

lines = [f"netdyno {version} has these crates compiled in.", ""]
for text, names in sorted(texts.items(), key=lambda item: (item[1], item[0])):
    lines += ["=" * 78, *sorted(set(names)), "-" * 78, text, ""]
if without:
    lines += ["=" * 78, "Without a text of their own, under the licences named:", *without, ""]
if linked:
    lines += ["=" * 78, "Libraries of the system, linked statically; Debian has their sources and licences:"]
    lines += [" ".join(word.split("=")) for word in linked]
Path(licences).write_text("\n".join(lines) + "\n", encoding="utf-8")
