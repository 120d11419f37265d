"""Writes the modules that follow from netdyno's own declarations: ``python -m netdyno._generate`` in a clone of the repository.

``_model.py`` and ``_snapshot_model.py`` follow from docs/report.schema.json and docs/snapshot.schema.json, ``_verbs.pyi`` from the table of
settings. A test fails when one of them is stale. A new setting is an argument without this, at run time; editors and type checkers
see it with the next run of it.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

HEAD = '''"""{about}

Made by ``python -m netdyno._generate``: do not edit.
"""

from __future__ import annotations

'''
WIDTH = 130


def _doc(text: str, indent: str) -> list[str]:
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += " "
    lines = textwrap.wrap(text, WIDTH - len(indent) - 6) or [""]
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}" for line in lines[1:])]


def _closed(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1] + '"""']


class _Model:
    """The classes of one schema."""

    def __init__(self, schema: dict[str, Any], root: str) -> None:
        self.root = root
        self.defs: dict[str, Any] = dict(schema["$defs"])
        self.defs[root] = {key: schema[key] for key in ("description", "properties", "required") if key in schema}
        self.classes = {name for name, of in self.defs.items() if self.members(of)}

    def members(self, of: dict[str, Any]) -> dict[str, tuple[dict[str, Any], bool]]:
        """Its members, and whether each is always there. Of one of several objects, those of all of them."""
        if "properties" in of:
            required = of.get("required", [])
            return {name: (member, name in required) for name, member in of["properties"].items()}
        found: dict[str, tuple[dict[str, Any], bool]] = {}
        kinds = [kind for kind in of.get("oneOf", []) if "properties" in kind]
        for kind in kinds:
            for name, member in kind["properties"].items():
                always = all(name in other.get("required", []) for other in kinds)
                found.setdefault(name, ({**member, "const": None} if "const" in member else member, always))
        return found if len(kinds) == len(of.get("oneOf", [])) else {}

    def kind(self, member: dict[str, Any]) -> tuple[str, str, bool]:
        """As it is written in Python, what it becomes, and whether it may be null."""
        if "anyOf" in member:
            others = [one for one in member["anyOf"] if one.get("type") != "null"]
            written, becomes, _ = self.kind(others[0]) if len(others) == 1 else ("Any", "", True)
            return written, becomes, True
        if "$ref" in member:
            # What holds another one of the whole names it so.
            name = self.root if member["$ref"] == "#" else member["$ref"].rsplit("/", 1)[1]
            return (name, name, False) if name in self.classes else self.plain(self.defs[name])
        return self.plain(member)

    def plain(self, member: dict[str, Any]) -> tuple[str, str, bool]:
        types = member.get("type", "string" if "oneOf" in member else None)
        types = [types] if isinstance(types, str) else types or []
        null = "null" in types
        kinds = [one for one in types if one != "null"]
        if kinds == ["array"]:
            items = member.get("items", {})
            if isinstance(items, dict) and items:
                written, becomes, _ = self.kind(items)
                if becomes and not becomes.startswith("*"):
                    return f"Rows[{becomes}]", f"*{becomes}", null
                return f"tuple[{written}, ...]", "*", null
            return "tuple[Any, ...]", "*", null
        simple = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "object": "dict[str, Any]"}
        if len(kinds) == 1 and kinds[0] in simple:
            return simple[kinds[0]], "", null
        return "Any", "", True

    def text(self, name: str) -> list[str]:
        of = self.defs[name]
        base = "Percentiles" if name == "Distribution" else "Record"
        lines = [f"class {name}({base}):", *_closed(_doc(of.get("description", name), "    ")), ""]
        table = []
        for member, (is_, always) in self.members(of).items():
            attribute = f"{member}_" if keyword.iskeyword(member) else member
            written, becomes, null = self.kind(is_)
            default = is_.get("default")
            if always and not null:
                pass
            elif written == "bool":
                default = False
            elif becomes.startswith("*") and not null:
                default = ()
            elif isinstance(default, (dict, list)) or default is None:
                # Left out: not known. A record that may be left out although it cannot be null is an empty one then.
                default = None
                written += " | None" if written != "Any" else ""
            lines += [f"    {attribute}: {written}"]
            if is_.get("description"):
                lines += _closed(_doc(is_["description"], "    "))
            table.append(f'        "{attribute}": ("{becomes}", {default!r}),')
        return [*lines, "", "    _MEMBERS = {", *table, "    }", "", ""]

    def module(self, about: str) -> str:
        body: list[str] = []
        for name in sorted(self.classes):
            body += self.text(name)
        names = sorted(self.classes)
        body += ["_CLASSES: dict[str, type[Record]] = {", *(f'    "{name}": {name},' for name in names), "}"]
        body += ["for _class in _CLASSES.values():", "    _class._CLASSES = _CLASSES", ""]
        used = [name for name in ("Any",) if any(re.search(rf"\b{name}\b", line) for line in body)]
        imports = [f"from typing import {', '.join(used)}", ""] if used else []
        record = "from ._record import Percentiles, Record, Rows"
        exported = ["__all__ = [", *(f'    "{name}",' for name in names), "]"]
        return HEAD.format(about=about) + "\n".join([*imports, record, "", *exported, "", "", *body])


def modules(docs: Path) -> dict[str, str]:
    """The text of each module by its name."""
    from . import _signature

    report = json.loads((docs / "report.schema.json").read_text(encoding="utf-8"))
    snapshot = json.loads((docs / "snapshot.schema.json").read_text(encoding="utf-8"))
    return {
        "_model.py": _Model(report, "ReportData").module("What a report holds, as docs/report.schema.json says."),
        "_snapshot_model.py": _Model(snapshot, "SnapshotData").module(
            "How a run stands, as docs/snapshot.schema.json says."
        ),
        "_verbs.pyi": _signature.stub(),
    }


def main() -> int:
    here = Path(__file__).resolve().parent
    docs = here.parent.parent / "docs"
    if len(sys.argv) > 1:
        here, docs = Path(sys.argv[1]), Path(sys.argv[2])
    for name, text in modules(docs).items():
        (here / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
