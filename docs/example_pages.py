"""For MkDocs: the notebooks in examples, run top to bottom, as pages that show what their cells show."""

import ast
import contextlib
import io
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass
class ExamplePage:
    """A page, and the files that it shows or offers, by their names.

    Attributes
    ----------
    markdown : str
        What the page says.
    files : dict of str to bytes or str
        Plots, the notebook with its outputs, and the script that all of it was made of.
    """

    markdown: str
    files: dict[str, bytes | str] = field(default_factory=dict)


def name_page(script: Path) -> str:
    """Return the name of a script's page, as it stands in the address."""
    return script.stem.replace("_", "-")


@cache
def write_page(name: str, script: str, *, is_run: bool = True) -> ExamplePage:
    """Run the cells of a notebook one by one, and write the page that shows what each of them shows.

    Parameters
    ----------
    name : str
        What the page is called, without an ending.
    script : str
        A notebook as a script, in the percent format of Jupytext.
    is_run : bool, default True
        Whether cells are run. Without, the page has all but their outputs, and takes no time.

    Returns
    -------
    ExamplePage
    """
    import jupytext
    from nbformat import v4

    notebook = jupytext.reads(script, fmt="py:percent")
    page = ExamplePage("")
    variables: dict[str, Any] = {"__name__": "__main__"}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(_point_to_pages(cell.source))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if not is_run:
            continue
        text, value, plots = run_cell(cell.source, variables)
        if text:
            cell.outputs.append(v4.new_output("stream", name="stdout", text=text))
            parts.append(_write_text(text))
        if value is not None:
            data = {"text/plain": repr(value)}
            if markup := find_markup(value):
                data["text/html"] = markup
            cell.outputs.append(v4.new_output("execute_result", data))
            parts.append(f'<div class="shown">\n{markup}\n</div>' if markup else _write_text(repr(value)))
        for title, drawing in plots:
            file = f"{name}-{sum(other.endswith('.svg') for other in page.files) + 1}.svg"
            page.files[file] = drawing
            cell.outputs.append(v4.new_output("display_data", {"image/svg+xml": drawing.decode()}))
            parts.append(f"![{title}]({file})")
    heading, *rest = parts
    offer = f"[Download this page as a notebook]({name}.ipynb) or [as a script]({name}.py)."
    page.markdown = "\n\n".join([*heading.split("\n\n", 1)[:1], offer, *heading.split("\n\n", 1)[1:], *rest]) + "\n"
    page.files[f"{name}.ipynb"] = jupytext.writes(notebook, fmt="ipynb")
    page.files[f"{name}.py"] = script
    return page


def run_cell(source: str, variables: dict[str, Any]) -> tuple[str, Any, list[tuple[str, bytes]]]:
    """Run a cell as a notebook does.

    Parameters
    ----------
    source : str
        The code of the cell.
    variables : dict
        What the cells before it have defined; it gets what this one defines.

    Returns
    -------
    text : str
        What was printed.
    value : object
        The value of the last expression; None where the cell does not end with one.
    plots : list of (str, bytes)
        The title of each figure that was drawn, and the figure as SVG.
    """
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), variables)
        value = eval(compile(last, "<cell>", "eval"), variables) if last else None
    return printed.getvalue(), value, _take_plots()


def find_markup(value: Any) -> str:
    """Return what a notebook shows of an object in place of its text; nothing where it has text alone."""
    write = getattr(value, "_repr_html_", None)
    markup = write() if callable(write) else None
    # Markdown ends a block of HTML at an empty line.
    return re.sub(r"\n\s*\n", "\n", markup.strip()) if markup else ""


def _point_to_pages(markdown: str) -> str:
    """Turn links between files of the repository, as they are seen from examples, into links between pages."""
    to_pages = re.sub(r"\]\((\w+)\.py\)", lambda link: f"]({name_page(Path(link[1]))}.md)", markdown)
    return to_pages.replace("](../docs/", "](../")


def _write_text(text: str) -> str:
    return f"``` {{ .text .shown }}\n{text.rstrip()}\n```"


def _take_plots() -> list[tuple[str, bytes]]:
    """Return the open figures with their titles, and close them."""
    from matplotlib import pyplot

    plots = []
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
        drawing = io.BytesIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
        plots.append((figure.get_suptitle() or ", ".join(titles) or "A plot", drawing.getvalue()))
        pyplot.close(figure)
    return plots
