"""For MkDocs: the notebooks in examples, run top to bottom, as pages that show what their cells show."""

import ast
import contextlib
import io
import itertools
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


@dataclass(frozen=True)
class CellOutput:
    """What a cell shows; nothing where it was not run.

    Attributes
    ----------
    text : str
        What was printed.
    value : object
        The value of the last expression; None where the cell does not end with one.
    plots : list of (str, bytes)
        The title of each figure that was drawn, and the figure as SVG.
    """

    text: str = ""
    value: Any = None
    plots: list[tuple[str, bytes]] = field(default_factory=list)


@cache
def make_page(name: str, script: str, *, runs_cells: bool = True) -> ExamplePage:
    """Run the cells of a notebook one by one, and make the page that shows what each of them shows.

    Parameters
    ----------
    name : str
        What the page is called, without an ending.
    script : str
        A notebook as a script, in the percent format of Jupytext.
    runs_cells : bool, default True
        Whether cells are run. Without, the page has all but their outputs, and takes no time.

    Returns
    -------
    ExamplePage
    """
    import jupytext

    notebook = jupytext.reads(script, fmt="py:percent")
    outputs = _run_cells(notebook.cells) if runs_cells else [CellOutput() for _ in notebook.cells]
    numbers = itertools.count(1)
    plots = [{f"{name}-{next(numbers)}.svg": plot for plot in output.plots} for output in outputs]
    markdown = _write_markdown(name, notebook.cells, outputs, plots)
    _fill_notebook(notebook.cells, outputs)
    files: dict[str, bytes | str] = {file: drawing for of_cell in plots for file, (_, drawing) in of_cell.items()}
    files |= {f"{name}.ipynb": jupytext.writes(notebook, fmt="ipynb"), f"{name}.py": script}
    return ExamplePage(markdown, files)


def _run_cells(cells: list[Any]) -> list[CellOutput]:
    """Run the cells with code, each with what those before it have defined."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    return [run_cell(cell.source, variables) if cell.cell_type == "code" else CellOutput() for cell in cells]


def _write_markdown(
    name: str, cells: list[Any], outputs: list[CellOutput], plots: list[dict[str, tuple[str, bytes]]]
) -> str:
    """Write the page: texts, code and what it shows, and after the title what can be downloaded."""
    parts = []
    for cell, output, plots_of_cell in zip(cells, outputs, plots, strict=True):
        if cell.cell_type == "markdown":
            # Links between files of the repository, as they are seen from examples, lead from page to page.
            parts.append(point_to_examples(cell.source).replace("](../docs/", "](../"))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if output.text:
            parts.append(_write_text(output.text))
        if output.value is not None:
            parts.append(_write_value(output.value))
        parts += [f"![{title}]({file})" for file, (title, _) in plots_of_cell.items()]
    heading, *rest = parts
    title, _, introduction = heading.partition("\n\n")
    offer = f"[Download this page as a notebook]({name}.ipynb) or [as a script]({name}.py)."
    return "\n\n".join([title, offer, *filter(None, [introduction]), *rest]) + "\n"


def _fill_notebook(cells: list[Any], outputs: list[CellOutput]) -> None:
    """Give the cells of a notebook their outputs."""
    from nbformat import v4

    for cell, output in zip(cells, outputs, strict=True):
        if output.text:
            cell.outputs.append(v4.new_output("stream", name="stdout", text=output.text))
        if output.value is not None:
            markup = find_markup(output.value)
            data = {"text/plain": repr(output.value)} | ({"text/html": markup} if markup else {})
            cell.outputs.append(v4.new_output("execute_result", data))
        for _, drawing in output.plots:
            cell.outputs.append(v4.new_output("display_data", {"image/svg+xml": drawing.decode()}))


def run_cell(source: str, variables: dict[str, Any]) -> CellOutput:
    """Run a cell as a notebook does.

    Parameters
    ----------
    source : str
        The code of the cell.
    variables : dict
        What the cells before it have defined; it gets what this one defines.

    Returns
    -------
    CellOutput
    """
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), variables)
        value = eval(compile(last, "<cell>", "eval"), variables) if last else None
    return CellOutput(printed.getvalue(), value, _take_plots())


def find_markup(value: Any) -> str:
    """Return what a notebook shows of an object in place of its text; nothing where it has text alone."""
    write = getattr(value, "_repr_html_", None)
    markup = write() if callable(write) else None
    # Markdown ends a block of HTML at an empty line.
    return re.sub(r"\n\s*\n", "\n", markup.strip()) if markup else ""


def point_to_examples(markdown: str, in_repository: str = "", on_site: str = "") -> str:
    """Turn links to scripts of examples into links to their pages.

    Parameters
    ----------
    markdown : str
        The text with the links.
    in_repository, on_site : str, default ""
        The way from the text to the folder of examples, in the repository and on the site.

    Returns
    -------
    str
    """
    link_to_script = rf"\]\({re.escape(in_repository)}(\w+)\.py\)"
    return re.sub(link_to_script, lambda link: f"]({on_site}{name_page(Path(link[1]))}.md)", markdown)


def _write_value(value: Any) -> str:
    markup = find_markup(value)
    return f'<div class="shown">\n{markup}\n</div>' if markup else _write_text(repr(value))


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
