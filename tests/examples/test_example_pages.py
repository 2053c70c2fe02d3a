"""A notebook becomes a page that shows what its cells show."""

import json

import matplotlib
import pytest

from docs.example_pages import EXAMPLES, make_page, name_page, run_cell

matplotlib.use("Agg")

NOTEBOOK = """# %% [markdown]
# # A title
#
# [Another](an_other.py), [a page](../docs/theory.md#pilboost).

# %%
two = 2
print("two lines\\nof text")

# %%
two + 1

# %%
import pandas as pd

pd.DataFrame({"column": [two]})

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots()
_ = ax.set_title("A curve")
"""


@pytest.fixture(scope="module")
def page():
    pytest.importorskip("jupytext", reason="notebooks are read with jupytext")
    return make_page("a-page", NOTEBOOK)


def test_a_page_begins_with_its_title_and_what_can_be_downloaded(page):
    assert page.markdown.startswith("# A title\n\n[Download this page as a notebook](a-page.ipynb)")
    assert page.files["a-page.py"] == NOTEBOOK


def test_links_between_files_become_links_between_pages(page):
    assert "[Another](an-other.md), [a page](../theory.md#pilboost)." in page.markdown


def test_what_is_printed_or_ends_a_cell_is_shown(page):
    assert "``` { .text .shown }\ntwo lines\nof text\n```" in page.markdown
    assert "``` { .text .shown }\n3\n```" in page.markdown
    assert '<div class="shown">\n<div>' in page.markdown
    assert "<th>column</th>" in page.markdown


def test_plots_are_files_that_their_titles_describe(page):
    assert "![A curve](a-page-1.svg)" in page.markdown
    assert b"<svg" in page.files["a-page-1.svg"]


def test_the_notebook_to_download_has_its_outputs(page):
    cells = json.loads(page.files["a-page.ipynb"])["cells"]
    kinds = [[output["output_type"] for output in cell.get("outputs", [])] for cell in cells]
    assert kinds == [[], ["stream"], ["execute_result"], ["execute_result"], ["display_data"]]


def test_without_running_a_page_has_all_but_outputs(page):
    unrun = make_page("a-page", NOTEBOOK, runs_cells=False)
    assert "two + 1" in unrun.markdown
    assert "shown" not in unrun.markdown
    assert set(unrun.files) == {"a-page.ipynb", "a-page.py"}


def test_a_cell_that_fails_fails_the_page():
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", {})


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_shows_text_and_plots(script):
    pytest.importorskip("jupytext", reason="notebooks are read with jupytext")
    page = make_page(name_page(script), script.read_text())
    assert ".shown" in page.markdown
    assert any(name.endswith(".svg") for name in page.files)
