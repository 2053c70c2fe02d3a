"""For MkDocs: pages that doctest runs and that read well on a forge, as the site shows them."""

import os
import re
from typing import Any

from example_pages import EXAMPLES, make_page, name_page, point_to_examples

#: Where this is 0, notebooks are shown without outputs. The tests build the site so, as `tests/examples` runs the
#: notebooks.
RUNS_NOTEBOOKS = os.environ.get("UNTWIST_SITE_RUNS_NOTEBOOKS", "1") != "0"


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook in examples, with its plots and what can be downloaded."""
    from mkdocs.structure.files import File

    if RUNS_NOTEBOOKS:
        import matplotlib

        matplotlib.use("Agg")
    for script in sorted(EXAMPLES.glob("*.py")):
        name = name_page(script)
        page = make_page(name, script.read_text(encoding="utf-8"), runs_cells=RUNS_NOTEBOOKS)
        files.append(File.generated(config, f"examples/{name}.md", content=page.markdown))
        for file, content in page.files.items():
            files.append(File.generated(config, f"examples/{file}", content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Turn links to examples into links to their pages, other links into the repository into plain text; mark sessions.

    Pages of examples are left alone: `make_page` has done so.
    Prompts and outputs of a session are highlighted by names of their own, by which copying leaves them out.
    """
    if page.file.src_uri.startswith("examples/"):
        return markdown
    to_pages = point_to_examples(markdown, "../examples/", "examples/")
    without_links = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", to_pages)
    return without_links.replace("```python\n>>> ", "```pycon\n>>> ")


def on_page_content(html: str, **_: object) -> str:
    """Keep options whole: a line of text may end before `--label`, but not after its hyphens."""

    def wrap_options(code: re.Match[str]) -> str:
        return re.sub(r"(?<![^\s>])--?[a-zA-Z][\w-]*", r'<span class="option">\g<0></span>', code[0])

    return re.sub(r"<code>[^<\n]*</code>", wrap_options, html)
