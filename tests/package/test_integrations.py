"""What the pages show of other packages runs; what they show of this one alone runs as doctests."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def list_sections(page):
    """The sections of a page with code of other packages: (title, code)."""
    for part in re.split(r"^## ", (DOCS / page).read_text(), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```python\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
        if code := "\n".join(block for block in blocks if ">>>" not in block):
            yield part.splitlines()[0], code


SECTIONS = [
    pytest.param(page, title, id=title) for page in ("deploy.md", "integrations.md") for title, _ in list_sections(page)
]


def test_pages_have_these_sections():
    titles = ["Which columns make a score", "ONNX", "treelite", "skops", "MLflow", "Optuna"]
    assert [one.values[1] for one in SECTIONS] == titles


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("page", "title"), SECTIONS)
def test_code_of_the_pages(page, title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "page"}
    for example in doctest.DocTestParser().get_examples((DOCS / page).read_text()):
        exec(compile(example.source, page, "single"), names)
    exec(dict(list_sections(page))[title], names)
