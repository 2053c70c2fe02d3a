"""The site of the documentation builds without a warning, fetches nothing, and links to what is there."""

import inspect
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import untwist

ROOT = Path(__file__).parents[2]


def test_the_site_builds_with_every_page(site):
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    built = {path.parent.name for path in site.glob("*/index.html")}
    assert pages - {"index"} <= built
    assert "live" in (site / "theory/index.html").read_text()


def test_examples_are_pages_that_can_be_downloaded(site):
    for script in (ROOT / "examples").glob("*.py"):
        name = script.stem.replace("_", "-")
        assert f'href="../{name}.ipynb"' in (site / f"examples/{name}/index.html").read_text()
        cells = json.loads((site / f"examples/{name}.ipynb").read_text())["cells"]
        assert {cell["cell_type"] for cell in cells} == {"markdown", "code"}
        assert (site / f"examples/{name}.py").read_text() == script.read_text()


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    for path in (ROOT / "docs").rglob("*.md"):
        assert f" {path.relative_to(ROOT / 'docs')}" in menu, path.name


class Headings(HTMLParser):
    """The identifiers of a page's headings."""

    def __init__(self, page):
        super().__init__()
        self.found = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        if tag in ("h2", "h3", "h4"):
            self.found.add(dict(attributes).get("id"))


def list_public_names(module):
    for name in module.__all__:
        member = getattr(module, name)
        if inspect.ismodule(member):
            yield from list_public_names(member)
        elif not name.startswith("_"):
            yield f"{module.__name__}.{name}"


def test_every_public_name_has_its_place_in_the_reference(site):
    headings = set().union(*(Headings(page).found for page in (site / "reference").rglob("*.html")))
    modules = [getattr(untwist, name) for name in dir(untwist)]
    names = [name for module in [untwist, *filter(inspect.ismodule, modules)] for name in list_public_names(module)]
    assert len(names) > 100
    assert [name for name in names if name not in headings] == []


def test_the_site_fetches_nothing(site):
    for page in site.rglob("*.html"):
        fetched = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=[\"']([^\"']+)", page.read_text())
        assert not [one for one in fetched if one.startswith(("http:", "https:", "//"))], page


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    headings = {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
                for line in text.splitlines() if line.startswith("#")}  # fmt: skip
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        elif not target.startswith(("http:", "https:")):
            assert (page.parent / target.split("#")[0]).exists(), target
