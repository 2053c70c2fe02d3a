"""Which labels of a table are wrong? ``untwist audit data.csv --label churn -o report.html``."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit import DataIssue, LabelAudit, Slice, audit_labels
from untwist.audit.correcting import UNDECIDED, find_likely_wrong, find_order, find_settled
from untwist.audit.explaining import explain_rows
from untwist.audit.hidden_sources import allow_for
from untwist.audit.posteriors import read_posteriors
from untwist.commands.columns import PreparedTable
from untwist.commands.decided import fingerprint_file, read_reviewed
from untwist.commands.kinds import COMPRESS
from untwist.commands.sheets import Sheet, read, write
from untwist.commands.steps import (
    describe_twins,
    encode_json,
    fit,
    name_twins,
    print_result,
    read_table,
)
from untwist.commands.undoing import keep_undo
from untwist.data.decisions import match_labels
from untwist.data.twins import HOW_MANY_UNKNOWN
from untwist.files.whole_files import write_whole
from untwist.progress import ProgressLine, print_status, use_display
from untwist.report import compare, report

__all__ = ["JudgedFile", "judge", "main"]

#: Suspects that are printed with their reasons on standard output.
SHOWN = 5
#: Suspects whose reasons are in the list.
EXPLAINED = 500
#: Pairs of a class and a label in the JSON, at most.
MOST_CONFUSIONS = 100
#: Pairs of sources in the JSON, at most.
MOST_DISAGREEMENTS = 100


def main(options: argparse.Namespace) -> int:
    """Judge every label, list the suspects, write what was asked for. The table itself is never touched.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    judged = judge(*read_table(options), options)
    listed = judged.list_suspects()
    if options.suspects:
        judged.write_suspects(options.suspects, listed)
    if options.output:
        judged.write_report(
            options.output, options.label, with_peers=options.peers, with_all=options.budget is not None
        )
    if options.json:
        judged.print_json(listed)
    else:
        judged.print_words(hint="" if options.suspects else ": --suspects FILE lists them all")
    if options.corrected:  # This comes last: where it is refused, all else has been written and said.
        judged.write_corrected(options.corrected, options.label, force=options.force)
    return 0


def judge(sheet: Sheet, table: PreparedTable, options: argparse.Namespace) -> JudgedFile:
    """Judge every label of a table that was read.

    Parameters
    ----------
    sheet, table
        What `read_table` returned.
    options : argparse.Namespace
        Those of `options.add_audit_options`.

    Returns
    -------
    JudgedFile
    """
    audit = _audit_by_file(sheet, table, options) if options.probabilities else _audit_by_fit(sheet, table, options)
    context = replace(
        audit.context,
        twins=name_twins(audit.context.twins, sheet, table, options.label),
        order=find_order(sheet.frame[options.label], audit.classes),  # A file may say the order of categories.
    )
    audit = replace(audit, context=context)
    if options.seek_sources:
        with use_display(ProgressLine()):
            found = audit.hidden_sources()
        if not found:
            print_status("no column looks like a source")
        audit = allow_for(audit, found[0]) if found else audit
    suspects = audit.suspects() if options.budget is None else audit.suspects(budget=min(options.budget, len(table.y)))
    return JudgedFile(sheet, table, audit, suspects)


def _audit_by_fit(sheet: Sheet, table: PreparedTable, options: argparse.Namespace) -> LabelAudit:
    """Judge the labels by the default classifier."""
    reviewed = None
    if options.reviewed:
        reviewed = read_reviewed(options.reviewed, sheet.frame, options.label, table, sheet.name_row)
    done = fit(table, options, reviewed=reviewed)
    if done.was_stopped:
        raise KeyboardInterrupt  # Not all rows have been judged by models that have not seen them.
    with use_display(ProgressLine()):
        return audit_labels(table.X, table.y, done.model, source=table.source, item=table.item)


def _audit_by_file(sheet: Sheet, table: PreparedTable, options: argparse.Namespace) -> LabelAudit:
    """Judge the labels by the probabilities in a file, which has a row for each row of the table."""
    path = options.probabilities
    given = read(path)
    frame = given.frame
    if any(str(name).startswith("P(") for name in frame.columns):
        print_status(
            f"{path} looks like what untwist predict writes: of a model that was trained on this table these have "
            "seen the labels, and make wrong ones look right; untwist audit without --probabilities judges by folds"
        )
    classes = np.unique(table.y)
    posterior = read_posteriors(frame, classes, len(sheet.frame), name=str(path), name_row=given.name_row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # What looks wrong with the probabilities is printed below.
        return audit_labels(
            table.X,
            table.y,
            pred_probs=posterior[table.rows],
            source=table.source,
            item=table.item,
            groups=table.groups,
            n_jobs=options.threads,
            random_state=options.seed,
        )


@dataclass(frozen=True, eq=False)
class JudgedFile:
    """A file, the table that was made of it, what the audit says of its labels, and the rows that are suspect."""

    sheet: Sheet
    table: PreparedTable
    audit: LabelAudit
    suspects: NDArray[np.intp]

    @cached_property
    def slices(self) -> list[Slice]:
        """Where wrong labels concentrate."""
        return self.audit.slices()

    @cached_property
    def issues(self) -> list[DataIssue]:
        """What else is wrong with the data; drift is looked for along the first column of dates too."""
        encoder = self.audit.table.encoder
        assert encoder is not None  # A file is a table.
        dates = [encoder.feature_labels[index] for index in sorted(encoder.schema.dates)]
        return self.audit.find_issues(time=dates[0] if dates else None)

    def values_beside(self, label: str) -> Any:
        """Return what the file says of each row of the audit, but for its label."""
        return self.sheet.frame.drop(columns=label).iloc[self.table.rows]

    @property
    def line_names(self) -> NDArray[Any]:
        """What each row of the audit is called in the file."""
        return np.asarray(self.sheet.lines[self.table.rows])

    def list_suspects(self) -> Any:
        """Return a frame of the suspects with their reasons."""
        suspects = self.suspects
        explanations = explain_rows(self.audit, suspects[:EXPLAINED])
        reasons = ["; ".join(map(str, one.reasons)) for one in explanations]
        if len(suspects) > EXPLAINED and self.audit.model is not None:
            print_status(f"reasons are given for the first {EXPLAINED} of {len(suspects)} suspects")
        columns = {
            self.sheet.row_word: self.sheet.lines[self.table.rows[suspects]],
            **({} if self.audit.context.source is None else {"source": self.audit.context.source[suspects]}),
            "label": self.audit.given[suspects],
            "looks_like": self.audit.predicted[suspects],
            "probability_wrong": np.round(self.audit.wrong[suspects], 4),
            "reasons": reasons + [""] * (len(suspects) - len(reasons)),
        }
        without_columns = self.sheet.frame.iloc[self.table.rows[suspects]][[]]
        return without_columns.assign(**columns)

    def write_suspects(self, path: Path, listed: Any) -> None:
        """Write the rows of the file that are suspect, with the columns of the list before their own."""
        rows = self.sheet.frame.iloc[self.table.rows[self.suspects]]
        write(_join(rows, listed), path, for_people=True)
        print_status(f"{len(self.suspects)} suspects in {path}")

    def write_corrected(self, path: Path, label: str, *, force: bool) -> None:
        """Write a copy of the file in which suspect labels that are likelier wrong than right are replaced."""
        audit = self.audit
        why_not = audit.verdict.why_not_corrected
        if why_not and not force:
            raise ValueError(
                f"{path} is not written: {why_not}. Review the suspects (untwist review), and apply "
                "what was decided; --force replaces labels that nobody has looked at"
            )
        likely = find_likely_wrong(audit, self.suspects)
        settled = likely if force else find_settled(audit, likely)
        corrected = audit.corrected(settled, force=True)
        changed = np.flatnonzero(corrected != self.table.y)
        spellings = self.sheet.frame[label].dropna().value_counts().index.tolist()  # A spreadsheet has 1.0 for 1.
        labels = match_labels(corrected[changed].tolist(), spellings)
        content = self.sheet.replace_labels(label, self.table.rows[changed], labels)
        compress = COMPRESS.get(path.suffix.lower(), bytes)
        write_whole(path, compress(content))
        undo = keep_undo(self.sheet, label, self.table.rows[changed], path)
        takes_back = "" if undo is None else f"; {undo} takes them back: untwist apply --undo"
        kept = len(likely) - len(settled)
        left = f"; {kept} are left, as {UNDECIDED}: --force replaces them, too" if kept else ""
        print_status(f"{len(changed)} labels replaced in {path}{takes_back}{left}")

    def write_report(self, path: Path, label: str, *, with_peers: bool, with_all: bool) -> None:
        """Write the report; `with_all` lists all suspects, and not only those that are likelier wrong than right."""
        page = report(
            self.audit,
            title=self.sheet.path.name,
            rows=self.line_names.tolist(),
            row_name=self.sheet.row_word,
            peers=compare(self.audit) if with_peers else None,
            suspects=self.suspects if with_all else None,
            issues=self.issues,
            table=self.values_beside(label),
            positions=self.table.rows,
            fingerprint=fingerprint_file(self.sheet.frame, label),
        )
        write_whole(path, page.encode())
        print_status(f"report in {path}: open it in a browser")

    def print_json(self, listed: Any) -> None:
        """Print everything for machines."""
        audit = self.audit
        expected, at_most = audit.bound_wrong(self.suspects)
        found = {
            "rows": len(self.table.y),
            "classes": audit.classes,
            "judge": audit.judge.name,
            "looks_in_sample": audit.judge.looks_in_sample,
            "in_sample_reason": audit.judge.in_sample_reason or None,
            "near_twins": describe_twins(audit.context.twins),
            "groups": None if audit.context.groups is None else len({*audit.context.groups.tolist()} - {None}),
            "rows_per_case": audit.context.rows_per_case,
            **self._list_shares(),
            **self._list_sources(),
            "hidden_source": self._describe_hidden_source(),
            "slices": [
                {"column": one.column, "where": one.where, "rows": one.rows}
                | _name_limits((one.share_wrong, one.low, one.high))
                | {"p_value": one.p_value}
                for one in self.slices
            ],
            "issues": self._list_issues(),
            "notes": self.table.notes,
            "expected_wrong_among_suspects": round(expected, 1) if audit.verdict.knows_share else None,
            "wrong_among_suspects_at_most": round(at_most, 1),
            "suspects": listed.to_dict(orient="records"),
        }
        print(encode_json(found))

    def _list_shares(self) -> dict[str, Any]:
        """How noisy the labels are, and which class bears which; nothing where that cannot be told."""
        audit, verdict = self.audit, self.audit.verdict
        is_told = verdict.tells_how_many
        rate_by_label = audit.rate_by_label if is_told else {}
        class_shares = zip(audit.classes.tolist(), verdict.share_by_class, strict=True) if is_told else []
        wrong = _name_limits(verdict.share) | {"not_excluded": verdict.highest_share}
        return {
            "noise_found": verdict.is_found,
            "noise": verdict.noise,
            "wrong": wrong if is_told else None,
            "wrong_by_label": [{"label": label} | _name_limits(rate) for label, rate in rate_by_label.items()],
            "wrong_by_class": [{"class": name} | _name_limits(rate) for name, rate in class_shares],
            "review": None if audit.review is None else audit.review.to_dict(),
            "matrix": audit.matrix if is_told else None,
            "confusions": [
                {"class": one.truth, "label": one.label, "rows": round(one.rows, 1)}
                | _name_limits((one.share, one.low, one.high))
                for one in audit.confusions()[:MOST_CONFUSIONS]
            ],
        }

    def _list_issues(self) -> list[dict[str, Any]]:
        """What else is wrong with the data, with the rows as the file names them."""
        names = self.line_names
        return [
            {
                "kind": one.kind,
                "reason": one.reason,
                "severity": one.severity,
                "columns": list(one.columns),
                f"{self.sheet.row_word}s": names[one.rows],
                "examples": [
                    {f"{self.sheet.row_word}s": names[list(each.rows)], "words": each.words} for each in one.examples
                ],
            }
            for one in self.issues
        ]

    def _list_sources(self) -> dict[str, Any]:
        """Who gave the labels, and who disagrees with whom; nothing where no sources were told."""
        audit = self.audit
        if audit.context.by_source is None:
            return {}
        untold: dict[str, Any] = {}
        if not audit.verdict.tells_how_many:
            untold = dict.fromkeys(("share", "low", "high", "others", "expected_wrong")) | {"by_class": []}
        return {
            "sources": [
                {
                    "source": one.name,
                    "labels": one.labels,
                    "share": one.share_wrong,
                    "low": one.low,
                    "high": one.high,
                    "others": one.others,
                    "expected_wrong": round(one.expected_wrong, 1),
                    "stands_out": one.stands_out,
                    "by_class": [{"class": name} | _name_limits(limits) for name, *limits in one.class_shares],
                }
                | untold
                for one in audit.sources.rate()
            ],
            "labels_per_item": audit.sources.labels_per_item,
            "disagreements": [
                {
                    "sources": [one.first, one.second],
                    "items": one.items,
                    "share": one.share,
                    "expected": one.expected,
                    "stands_out": one.stands_out,
                }
                for one in audit.sources.find_disagreements()[:MOST_DISAGREEMENTS]
            ],
        }

    def _describe_hidden_source(self) -> dict[str, Any] | None:
        """The column that looks like a source, if there is one."""
        hidden = self.audit.context.hidden_source
        if hidden is None:
            return None
        return {
            "column": hidden.column,
            "where": hidden.where,
            "rows": hidden.rows,
            "share": hidden.share_there,
            "elsewhere": hidden.share_elsewhere,
            "wrong_as_feature": hidden.share_as_feature,
            "wrong_as_source": hidden.share_as_source,
            "wrong_as_source_low": hidden.interval_as_source[0],
            "wrong_as_source_high": hidden.interval_as_source[1],
            "suspects_as_feature": dict(zip(("there", "in_all"), hidden.suspects_as_feature, strict=True)),
            "suspects_as_source": dict(zip(("there", "in_all"), hidden.suspects_as_source, strict=True)),
            "advice": hidden.advise(for_command=True),
        }

    def print_words(self, hint: str) -> None:
        """Print the noise and the first suspects for people; `hint` follows the number of the others."""
        n_suspects = len(self.suspects)
        print_result(self.audit.verdict.describe(for_command=True, lists_rows=n_suspects > 0))
        for one in self.slices[:SHOWN]:
            print_result(f"  labels look wrong more often (or are much harder to tell): {one}")
        names = self.line_names.tolist()
        for issue in self.issues:
            print_result(f"  {issue.describe(names, self.sheet.row_word)}")
        if n_suspects:
            self._print_expectation()
        explanations = explain_rows(self.audit, self.suspects[:SHOWN])
        for explanation in explanations:
            words = str(explanation).split(": ", 1)[1]
            name = self.sheet.name_row(self.table.rows[explanation.row])
            print_result(f"\n{name} of {self.sheet.path.name}: {words}")
        if any(one.reasons for one in explanations):
            print_result("\nIn brackets: how many log-odds likelier the label would be with the usual value.")
        if len(self.suspects) > SHOWN:
            print(f"\n... and {len(self.suspects) - SHOWN} more{hint}")

    def _print_expectation(self) -> None:
        """Print how many of the suspects are wrong, unless that was said before."""
        n_suspects = len(self.suspects)
        rows = f"these {n_suspects} rows" if n_suspects > 1 else "this row"
        low, high = self.audit.bound_wrong(self.suspects)
        verdict = self.audit.verdict
        if not verdict.tells_how_many:
            print_result(f"Of the labels of {rows} some may be wrong; {HOW_MANY_UNKNOWN}.")
        elif not verdict.is_found:
            why = "no noise was found that is the same everywhere, and uneven noise looks like hard rows"
            print_result(f"Of the labels of {rows} up to {math.ceil(high):,} may be wrong: {why}.")
        elif f"{n_suspects} are suspects, about {low:,.0f} of" not in verdict.headline:
            print_result(f"Of the labels of {rows} about {low:,.0f} are expected to be wrong.")


def _name_limits(rate: Sequence[float]) -> dict[str, float]:
    return dict(zip(("share", "low", "high"), rate, strict=True))


def _join(frame: Any, listed: Any) -> Any:
    """Put the columns of the list before those of the file; a name that the file has too gets an underscore."""
    joined = frame.copy()
    for position, name in enumerate(listed.columns):
        free_name = name
        while free_name in frame.columns:
            free_name += "_"
        joined.insert(position, free_name, listed[name])
    return joined
