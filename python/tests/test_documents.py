"""docs/python.md: blocks that start no job are run, in their order; all are Python, and type checkers agree with them and the examples."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def test_blocks_that_start_no_job_do_what_they_say():
    names: dict[str, object] = {}
    exec("import netdyno as nd", names)
    run = [block for block in BLOCKS if "nd.lab" not in block]
    assert len(run) >= 3
    for block in run:
        exec(compile(block, "docs/python.md", "exec"), names)


def test_blocks_that_start_jobs_do_what_they_say(capsys):
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/python.md", "exec"), names)
    frames, lost, latency = capsys.readouterr().out.split()
    assert int(frames) > 9000 and float(lost) == 0 and int(latency) > 0
    names["ping"]()  # type: ignore[operator]
    assert capsys.readouterr().out == "100 answers, 0 without\n"
    report = names["watch"]()  # type: ignore[operator]
    assert 2000 < report.tx.frames < 10_000 and "stopped after" in report.verdict.reasons[0]


def test_blocks_and_examples_have_the_types_of_the_package(tmp_path):
    file = tmp_path / "page.py"
    file.write_text("\n".join(BLOCKS))
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "python/pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    notebooks = [json.loads(path.read_text()) for path in sorted((ROOT / "examples/python").glob("*.ipynb"))]
    assert notebooks
    for number, notebook in enumerate(notebooks):
        cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        (tmp_path / f"notebook{number}.py").write_text("\n".join(cells))
    examples = [*map(str, tmp_path.glob("notebook*.py"))]
    examples += sorted(map(str, (ROOT / "examples/python").glob("*.py")))
    for of in ([str(file)], examples):
        done = subprocess.run([*mypy, *of], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
