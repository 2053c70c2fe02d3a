"""The suspect rows: what a review may expect, and a place to work through them that keeps what was decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from untwist.audit.findings import Findings
from untwist.audit.labels import LabelAudit
from untwist.audit.reasons import Explanation, Reason, describe_value
from untwist.audit.statements import write_conditions, write_counts
from untwist.report import charts
from untwist.report.markup import format_words, name_column, place_beside, write_figure, write_table
from untwist.report.worksheet import LEAST_SHOWN_EFFECT, RowNames, pack_worksheet
from untwist.text import for_page, for_script

__all__ = ["assign_keys", "write_review"]

#: Suspects that can be read without a script, and in print, at most.
MOST_PLAIN = 50

#: Classes that have a button and a digit each, at most; of more, one is chosen by typing.
MOST_KEYED = 10
#: What each key does, as the page's help says it.
KEYS = [
    ("J or ↓", "the next row"),
    ("K or ↑", "the row before"),
    ("Y or Shift+K", "keep the label: it is right"),
    ("R", "relabel to what the row looks like"),
    ("S", "skip: it cannot be told, or not now"),
    ("U", "undo the last decision"),
    ("N", "write a note: Enter keeps it, Esc drops it"),
    ("/", "search: Enter goes back to the rows, Esc finds all again"),
    ("?", "this help"),
]
#: And where each class has a button, or where they are too many for that.
BY_DIGIT = ("0 … 9", "the label is the class whose button shows that digit")
BY_TYPING = ("C", "choose any class by typing")

#: What reasons are.
WHY = """Why: a column speaks against the label if the row would look more like its label with what is usual
for that label there; the number says how strongly, in log-odds. Similar rows share most leaves of the trees."""
#: Why there are none.
NO_REASONS = """Why a label is doubted, and which rows are similar, is told by trees of ours; here posteriors of another
model have judged."""


def write_review(findings: Findings, rows: RowNames, config: dict[str, Any], table: Any = None) -> str:
    """Write the section of the suspect rows.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.
    rows : RowNames
        What the rows are called.
    config : dict
        What the script is told beside the rows: the fingerprint of the data, the title, where a server is.
    table : pandas.DataFrame or None
        The values to show of each audited row; None shows those that were audited.

    Returns
    -------
    str
        HTML.
    """
    audit = findings.audit
    suspects = findings.suspects
    if not len(suspects) and findings.is_uneven:
        return f"<p>No row is listed by itself: {_point_to_parts(findings)}.</p>"
    if not len(suspects):
        return f"<p>No row is listed. {format_words(findings.verdict.sentence)}.</p>"
    sheet = pack_worksheet(findings, rows, table)
    config = config | {"classes": [str(label) for label in audit.classes.tolist()], "row_name": rows.word}
    return f"""<p>{_introduce(findings, sheet.n_suspects)}</p>
{_write_expectation(findings)}
{_write_desk(audit, rows.word)}
{_write_plain_table(findings, rows)}
<script type="application/json" id=review-config>{for_script(config)}</script>
<script type="text/plain" id=review-data>{sheet.packed}</script>"""


def _write_desk(audit: LabelAudit, word: str) -> str:
    """The place to work, which the script fills and shows."""
    classes = [str(label) for label in audit.classes.tolist()]
    has_buttons = len(classes) <= MOST_KEYED
    said = [*KEYS, BY_DIGIT if has_buttons else BY_TYPING]
    keys = "".join(f"<div><dt>{key}</dt><dd>{what}</dd></div>" for key, what in said)
    return f"""<div id=work hidden>
<div class=progress><p id=yield role=status></p><progress id=done max=1 value=0 aria-label="Decided"></progress></div>
<form class=controls role=search aria-label="Filter the rows">
<label class=wide>Search <input type=search id=words autocomplete=off spellcheck=false
 placeholder="a value, an id, a label, column:value"></label>
<label>Decision <select id=state><option value="">any</option><option value=open>open</option>
<option value=decided>decided</option><option value=keep>kept</option><option value=relabel>relabelled</option>
<option value=skip>skipped</option></select></label>
{_write_filter("Label", "given", audit)}{_write_filter("Looks like", "like", audit)}
<label>Order <select id=order><option value="">most doubtful</option><option value=name>{for_page(word, 20)}</option>
<option value=given>label</option><option value=like>looks like</option></select></label></form>
<p id=message role=alert hidden></p>
<div class=desk>
<div class=pile><div id=list role=listbox tabindex=0 aria-label="Suspect rows"></div>
<p id=status role=status class=aside></p></div>
<article id=sheet aria-label="The row at hand">
<div id=head></div>
<div class=actions role=group aria-label="Decide">
{_write_button("id=keep", "Keep <span></span>", "Y")}
{_write_button("id=relabel", "Relabel <span></span>", "R")}
{_write_button("id=skip", "Skip", "S")}
{"" if has_buttons else _write_button("id=choose", "Another class", "C")}
{_write_button("id=undo", "Undo", "U")}
{_write_class_buttons(classes) if has_buttons else ""}</div>
<div id=details tabindex=-1></div>
<label class=note>Note <kbd>N</kbd><input id=note autocomplete=off maxlength=1000></label>
</article></div>
<div class=files><button type=button id=save>Save decisions</button>
<button type=button id=load>Load decisions</button><input type=file id=file accept=".csv,text/csv" hidden
 aria-label="A file of decisions"><button type=button id=download>Download this list</button>
{_write_button("id=help", "Keys", "?")}
<label class=switch><input type=checkbox id=uses-keys autocomplete=off checked> Use keys</label>
<p id=kept class=aside></p></div>
<dialog id=keys aria-label="Keys"><h3>All by keyboard</h3><dl>{keys}</dl>
<p class=aside>A key acts while the row at hand is in view; otherwise it only brings that row into view. “Use keys”
below the rows switches all of them off.</p>
<p class=aside>Search finds text in values, ids, labels, sources, reasons and notes; all words must be there.
<code>branch:Leipzig</code> looks in one column, <code>"in quotes"</code> keeps words together.</p>
<form method=dialog><button>Close</button></form></dialog>
<dialog id=picker aria-label="Choose a class"><label>Class <input id=pick autocomplete=off role=combobox
 aria-expanded=true aria-controls=picks></label><div id=picks role=listbox aria-label="Classes"></div></dialog>
</div>"""


def assign_keys(classes: Sequence[str]) -> list[str]:
    """Assign a digit to each of a few classes: its own where its label is one, else the first that is free.

    Parameters
    ----------
    classes : sequence of str
        At most `MOST_KEYED` labels.

    Returns
    -------
    list of str
        A digit for each class, all different.
    """
    own = [re.sub(r"\.0+$", "", label.strip()) for label in classes]
    keys: dict[int, str] = {}
    for place, digit in enumerate(own):
        if re.fullmatch("[0-9]", digit) and digit not in keys.values():
            keys[place] = digit
    free = (digit for digit in "1234567890" if digit not in keys.values())
    return [keys.get(place) or next(free) for place in range(len(classes))]


def _write_class_buttons(classes: Sequence[str]) -> str:
    """A button for each class, which shows its key."""
    buttons = [
        _write_button(f"data-label={label}", for_page(name or "(empty)", 60), key)
        for label, (name, key) in enumerate(zip(classes, assign_keys(classes), strict=True))
    ]
    return f"<div id=classes role=group aria-labelledby=its><span id=its>Its label is</span>{''.join(buttons)}</div>"


def _write_button(attributes: str, words: str, key: str) -> str:
    """A button that shows its key; the script presses the button whose key is pressed."""
    return f'<button type=button {attributes} aria-keyshortcuts="{key}">{words}<kbd>{key}</kbd></button>'


def _write_plain_table(findings: Findings, rows: RowNames) -> str:
    """The first rows as a table to read and to print."""
    first = findings.explanations[:MOST_PLAIN]
    body = "".join(_write_line(findings.audit, rows.names[one.row], one) for one in first)
    likely = "likely as it was" if findings.verdict.is_chance else "likely wrong"
    heads = [for_page(rows.word, 20), "label", "looks like", likely, "similar rows against it", "why"]
    head = "".join(f"<th scope=col>{word}</th>" for word in [*heads, "decision"])
    caption = f"The first {len(first):,} suspect rows" if len(findings.suspects) > len(first) else "Suspect rows"
    return f"""<div id=plain class=scroll role=region tabindex=0 aria-label="{caption}"><table id=suspects>
<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>
{body}</tbody></table></div>
<p class=aside>{WHY if findings.training else NO_REASONS} A value is marked as unusual if at most one in twenty
rows of that label have one as rare.</p>"""


def _point_to_parts(findings: Findings) -> str:
    """Where to look instead, if no label stands out by itself but some part of the table does."""
    hidden = findings.audit.context.hidden_source
    if hidden is not None:
        column = for_page(name_column(hidden.column), 40)
        return (
            f"with {column} taken as a feature no row is suspect. With it as a source "
            f'{hidden.suspects_as_source[1]:,} are: run again as said under <a href="#summary">in short</a>'
        )
    return (
        "no single label stands out. But labels look wrong more often (or are much harder to tell) in "
        '<a href="#noise">parts of the table</a>: review some of them there'
    )


def _introduce(findings: Findings, n_held: int) -> str:
    n_suspects = len(findings.suspects)
    words = "The rows that were asked for" if findings.asked_for else "The rows whose labels are most likely wrong"
    order = "the most surprising" if findings.verdict.is_chance else "the most doubtful"
    number = findings.verdict.describe_yield(findings.audit.expected_yield(findings.suspects))
    words += f", {order} first: {n_suspects:,}, {number}."
    if not findings.verdict.is_found and not findings.verdict.is_chance:
        words += " Hard rows look the same as wrong labels here: only a review can tell."
    if n_suspects > n_held:
        words += f" This page holds the first {n_held:,} of {n_suspects:,}."
    return words


def _write_expectation(findings: Findings) -> str:
    """How many wrong labels a review finds, by how many rows it has."""
    audit, suspects, verdict = findings.audit, findings.suspects, findings.verdict
    if verdict.is_chance:
        return ""
    steps = [k for k in (10, 50, 100, 500, 1000, 5000) if k < len(suspects)] + [len(suspects)]
    expected = [audit.expected_yield(suspects[:k]) for k in steps]
    lines = [[f"first {k:,}", write_counts(one)] for k, one in zip(steps, expected, strict=True)]
    caption = f"What to expect{write_conditions(expected[-1].rests_on)}"
    table = write_table(caption, ["rows reviewed", "of them wrong"], lines)
    if not verdict.is_found:
        return table
    chart = charts.draw_finds(
        findings.expected_finds,
        audit.expect_wrong(audit.ranking) / len(audit.ranking),
        len(suspects),
        f"Wrong labels expected to be found by a review: {lines[-1][1]} among {len(suspects):,} rows",
    )
    caption = (
        "What a review is expected to find. The dot is the end of the list; the dashed line is a review in any order."
    )
    return place_beside(write_figure(chart, caption), table)


def _write_filter(word: str, name: str, audit: LabelAudit) -> str:
    options = "".join(f"<option value={i}>{for_page(one, 40)}</option>" for i, one in enumerate(audit.classes.tolist()))
    return f'<label>{word} <select id={name}><option value="">any</option>{options}</select></label>\n'


def _write_line(audit: LabelAudit, name: Any, one: Explanation) -> str:
    reasons = "".join(_write_reason(reason) for reason in one.reasons if reason.effect >= LEAST_SHOWN_EFFECT)
    against = f"{one.n_disagreeing} of {one.n_similar}" if one.n_similar else ""
    if not reasons:
        reasons = f"<li>{'no single column stands out' if audit.model is not None else 'no trees of ours to ask'}</li>"
    return (
        f"<tr><th scope=row>{for_page(name, 40)}</th><td>{for_page(one.given, 40)}{_name_source(audit, one.row)}</td>"
        f"<td>{for_page(one.predicted, 40)}</td><td>{one.likely}</td><td>{against}</td>"
        f"<td><ul>{reasons}</ul></td><td></td></tr>\n"
    )


def _name_source(audit: LabelAudit, row: int) -> str:
    """Who gave the label, below it."""
    if audit.context.source is None or audit.context.source[row] is None:
        return ""
    return f" <small>by {for_page(audit.context.source[row], 40)}</small>"


def _write_reason(reason: Reason) -> str:
    column = for_page(name_column(reason.column), 40)
    value = for_page(describe_value(reason.value), 40)
    usual = for_page(describe_value(reason.usual), 40)
    return f"<li><b>{column}</b> is {value}, usually {usual} <small>+{reason.effect:.1f}</small></li>"
