"""For MkDocs: pages that doctest runs and that read well on a forge, as the site shows them."""

import re


def on_page_markdown(markdown: str, **_: object) -> str:
    """Turn links into the repository, which the site does not hold, into their text, and mark sessions as such.

    Prompts and outputs of a session are highlighted by names of their own, by which copying leaves them out.
    """
    without_links = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", markdown)
    return without_links.replace("```python\n>>> ", "```pycon\n>>> ")


def on_page_content(html: str, **_: object) -> str:
    """Keep options whole: a line of text may end before `--label`, but not after its hyphens."""

    def wrap_options(code: re.Match[str]) -> str:
        return re.sub(r"(?<![^\s>])--?[a-zA-Z][\w-]*", r'<span class="option">\g<0></span>', code[0])

    return re.sub(r"<code>[^<\n]*</code>", wrap_options, html)
