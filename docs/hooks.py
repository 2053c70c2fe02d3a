"""For MkDocs: pages that doctest runs and that read well on a forge, as the site shows them."""

import os
import re
from pathlib import Path
from typing import Any

from example_pages import EXAMPLES, name_page, write_page

#: Set to 0, it leaves the outputs of the examples out: the tests run them elsewhere.
RUNS_EXAMPLES = os.environ.get("UNTWIST_RUNS_EXAMPLES", "1") != "0"


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook in examples, with its plots and what can be downloaded."""
    from mkdocs.structure.files import File

    if RUNS_EXAMPLES:
        import matplotlib

        matplotlib.use("Agg")
    for script in sorted(EXAMPLES.glob("*.py")):
        name = name_page(script)
        page = write_page(name, script.read_text(encoding="utf-8"), is_run=RUNS_EXAMPLES)
        files.append(File.generated(config, f"examples/{name}.md", content=page.markdown))
        for file, content in page.files.items():
            files.append(File.generated(config, f"examples/{file}", content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Turn links into the repository, which the site does not hold, into their text, and mark sessions as such.

    Prompts and outputs of a session are highlighted by names of their own, by which copying leaves them out.
    """
    if page.file.src_uri.startswith("examples/"):
        return markdown
    to_examples = re.compile(r"\]\(\.\./examples/(\w+)\.py\)")
    to_pages = to_examples.sub(lambda link: f"](examples/{name_page(Path(link[1]))}.md)", markdown)
    without_links = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", to_pages)
    return without_links.replace("```python\n>>> ", "```pycon\n>>> ")


def on_page_content(html: str, **_: object) -> str:
    """Keep options whole: a line of text may end before `--label`, but not after its hyphens."""

    def wrap_options(code: re.Match[str]) -> str:
        return re.sub(r"(?<![^\s>])--?[a-zA-Z][\w-]*", r'<span class="option">\g<0></span>', code[0])

    return re.sub(r"<code>[^<\n]*</code>", wrap_options, html)
