"""Audits for the tests of the report, and what reads a page."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pandas as pd

from untwist.audit import audit_labels
from untwist.twisters import ClassConditionalNoise

CITIES = ["Århus", "Basel", "Cork", "Delft", "Espoo", "Fès", "Gent", "Haifa"]


def make_customers(n=1500, seed=0):
    """A table with categories and missing values, noisy labels, and the rows whose label was turned."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "city": rng.choice(CITIES, n),
            "age": rng.integers(18, 90, n),
            "monthly fee": rng.gamma(4, 9, n).round(2),
            "calls to support": rng.poisson(1.5, n).astype(float),
            "tenure in months": rng.integers(0, 120, n),
            "plan": rng.choice(["basic", "plus", "family"], n),
        }
    )
    stays = 1.6 * table["city"].isin(["Århus", "Delft", "Gent"]) - 0.8 + (table["age"] - 50) / 18
    stays += 0.9 * (1.5 - table["calls to support"]) + (table["tenure in months"] - 50) / 40
    table.loc[rng.random(n) < 0.06, "calls to support"] = np.nan
    truth = np.where(stays + rng.normal(0, 0.3, n) > 0, "stays", "leaves")
    return ClassConditionalNoise(rate_neg=0.25, rate_pos=0.1).twist(table, truth, rng=seed)


HOSTILE = [
    "</script><script>alert(1)</script>",
    "a\"b'c",
    "<img src=x onerror=alert(2)>",
    "=1+1",
    "很长" * 30,
    "x" * 500,
    "' autofocus onfocus=alert(6) x='",
    "` onpointerenter=alert(7) style=position:fixed;inset:0 `",
    "javascript:alert(8)",
    "</style><style>*{display:none}",
    "--></title></textarea></svg><svg onload=alert(9)>",
    "]]><![CDATA[<script>alert(10)</script>]]>",
    "\u2028alert(11)\u2029${alert(12)}{{alert(13)}}\\u003cscript>",
    "&#60;script&#62;alert(14)&lt;/script&gt;",
    "\u2066\u202enitrevni\u2069\x1b]8;;http://x\x07\x00",
]


def audit_hostile_table(n=800):
    """Names, values and labels that try to get out of where they belong; and names of rows."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "<script>alert(3)</script>": rng.normal(size=n),
            '"onmouseover="alert(4)': rng.choice([*HOSTILE, "\u202eevil\x00"], n),
            "&lt;b&gt; & ]]> <!--": rng.normal(size=n),
            "' onfocus=alert(15) autofocus tabindex=1 x='": rng.normal(size=n),
            "</style></svg><iframe srcdoc='<script>alert(16)</script>'>": rng.normal(size=n),
        }
    )
    labels = np.array(["</title></script><b>yes", '=HYPERLINK("http://x";"no")'], dtype=object)
    truth = (table.iloc[:, 0] + (table.iloc[:, 1].str.len() > 10) > 0.3).to_numpy()
    names = [f'@cmd|{i}<b>"\n\ud800' for i in range(n)]
    return audit_labels(table, labels[(truth ^ (rng.random(n) < 0.2)).astype(int)]), names


class Page(HTMLParser):
    """Refuses what is not well-formed, and collects."""

    VOID = ("meta", "link", "input")
    INLINE = ("b", "small", "a", "code", "span", "svg")
    SHAPES = ("path", "rect", "circle")  # of SVG, which close themselves

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), (tag, names)
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in self.SHAPES, tag
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
        if tag not in self.INLINE:
            self.text += " "

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data

    def values(self, name):
        return [value for _, each, value in self.attributes if each == name]


def read_text(part):
    """The text of a page, blanks as one."""
    return " ".join(Page(part).text.split())


def unpack(page):
    """The rows that a page holds for its script."""
    (packed,) = re.findall(r"id=review-data>([A-Za-z0-9+/=]*)</script>", page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))
