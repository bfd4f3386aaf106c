"""Every Python snippet of the documents runs, in the order of its page, in a directory of its own."""

import contextlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "s3"))
from s3_servers import fake_s3  # noqa: E402

FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Pages about a framework run in its own environment: the tests of the framework ask for them.
FRAMEWORKS = ("jax", "mxnet", "tensorflow", "xgboost")


def needs(snippets):
    return {name for name in FRAMEWORKS if re.search(rf"^import {name}\b", "\n".join(snippets), re.MULTILINE)}


def pages(of=None):
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        snippets = FENCE.findall(path.read_text())
        missing = {name for name in needs(snippets) if importlib.util.find_spec(name) is None}
        if snippets and not missing and (of is None or of in needs(snippets)):
            yield pytest.param(snippets, id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize("snippets", list(pages()))
def test_snippets_of_a_page_run_as_printed(snippets, tmp_path):
    if any("torch" in snippet for snippet in snippets):
        pytest.importorskip("torch")
    program = tmp_path / "page.py"
    program.write_text("\n".join(snippets))
    # A page that speaks of a bucket has one of this name.
    with fake_s3() if "S3" in program.read_text() else contextlib.nullcontext() as server:
        done = subprocess.run(
            [sys.executable, str(program)],
            cwd=tmp_path,
            env={**(server.environment() if server else os.environ), "TORNASOLE_STRICT": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
