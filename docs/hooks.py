"""For MkDocs: pages that doctest runs and that read well on a forge, as the site shows them."""

import re


def on_page_markdown(markdown: str, **_: object) -> str:
    """Turn links into the repository, which the site does not hold, into their text, and mark sessions as such.

    Prompts and outputs of a session are highlighted by names of their own, by which copying leaves them out.
    """
    without_links = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", markdown)
    return without_links.replace("```python\n>>> ", "```pycon\n>>> ")
