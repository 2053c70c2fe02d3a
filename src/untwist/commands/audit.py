"""Which labels of a table are wrong? ``untwist audit data.csv --label churn -o report.html``."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit import DataIssue, LabelAudit, Slice, audit_labels
from untwist.audit.correcting import UNDECIDED, find_likely_wrong, find_settled
from untwist.audit.explaining import explain_rows
from untwist.audit.hidden_sources import allow_for
from untwist.audit.posteriors import read_posteriors
from untwist.commands.apply import keep_undo
from untwist.commands.columns import PreparedTable
from untwist.commands.decided import fingerprint_file, read_reviewed
from untwist.commands.kinds import COMPRESS
from untwist.commands.sheets import Sheet, read, write
from untwist.commands.steps import (
    describe_near_duplicates,
    encode_json,
    fit,
    name_near_duplicates,
    print_result,
    read_order,
    read_table,
    take_fields,
)
from untwist.data.decisions import match_labels
from untwist.files.whole_files import write_whole
from untwist.progress import ProgressLine, print_status, use_display
from untwist.report import compare, report

#: Suspects that are printed with their reasons on standard output.
SHOWN = 5
#: Suspects whose reasons are in the list.
EXPLAINED = 500
#: Pairs in the JSON, at most: of a class and a label, and of sources.
MOST_PAIRS = 100


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
        twins=name_near_duplicates(audit.context.twins, sheet, table, options.label),
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
    model, was_stopped = fit(table, options, sheet.frame[options.label], reviewed=reviewed)
    if was_stopped:
        raise KeyboardInterrupt  # Not all rows have been judged by models that have not seen them.
    with use_display(ProgressLine()):
        return audit_labels(table.X, table.y, model, source=table.source, item=table.item, chance=options.chance)


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
            order=read_order(options.order, table.y, sheet.frame[options.label]),
            chance=options.chance,
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
        content, before = self.sheet.replace_labels(label, self.table.rows[changed], labels)
        compress = COMPRESS.get(path.suffix.lower(), bytes)
        write_whole(path, compress(content))
        undo = keep_undo(self.sheet, label, self.table.rows[changed], before, path)
        takes_back = "" if undo is None else f"; {undo} takes them back: untwist apply --undo"
        print_status(f"{len(changed)} labels replaced in {path}{takes_back}")
        if len(settled) < len(likely):
            left = f"{len(likely) - len(settled)} more look wrong, but {UNDECIDED}"
            print_status(f"{left}; --force replaces them too, though nobody has looked at them")

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
        found = {
            "rows": len(self.table.y),
            "classes": audit.classes,
            "verdict": audit.verdict.to_dict(),
            "judge": audit.judge.name,
            "looks_in_sample": audit.judge.looks_in_sample,
            "in_sample_reason": audit.judge.in_sample_reason or None,
            "near_duplicates": describe_near_duplicates(audit.context.twins),
            "groups": None if audit.context.groups is None else len({*audit.context.groups.tolist()} - {None}),
            "rows_per_case": audit.context.rows_per_case,
            **self._list_shares(),
            **self._list_sources(),
            "hidden_source": self._describe_hidden_source(),
            "slices": [
                take_fields(one, "column", "where", "rows", "low", "high", "p_value") | {"share": one.share_wrong}
                for one in self.slices
            ],
            "issues": self._list_issues(),
            "notes": self.table.notes,
            "wrong_among_suspects": audit.expected_yield(self.suspects).to_dict(),
            "suspects": listed.to_dict(orient="records"),
        }
        print(encode_json(found))

    def _list_shares(self) -> dict[str, Any]:
        """What a review found, and which class bears which label, where noise was found."""
        audit, is_found = self.audit, self.audit.verdict.is_found
        return {
            "review": None if audit.review is None else audit.review.to_dict(),
            "matrix": audit.matrix if is_found else None,
            "confusions": [
                {"class": one.truth, "label": one.label, "rows": round(one.rows, 1)}
                | _name_limits((one.share, one.low, one.high))
                for one in (audit.confusions()[:MOST_PAIRS] if is_found else [])
            ],
        }

    def _list_issues(self) -> list[dict[str, Any]]:
        """What else is wrong with the data, with the rows as the file names them."""
        names = self.line_names
        return [
            take_fields(one, "kind", "reason", "severity", "columns")
            | {
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
        if not audit.verdict.is_found:
            untold = dict.fromkeys(("share", "low", "high", "others", "expected_wrong")) | {"by_class": []}
        return {
            "sources": [
                take_fields(one, "labels", "low", "high", "others", "stands_out")
                | {
                    "source": one.name,
                    "share": one.share_wrong,
                    "expected_wrong": round(one.expected_wrong, 1),
                    "by_class": [{"class": name} | _name_limits(limits) for name, *limits in one.class_shares],
                }
                | untold
                for one in audit.sources.rate()
            ],
            "labels_per_item": audit.sources.labels_per_item,
            "disagreements": [
                take_fields(one, "items", "share", "expected", "stands_out") | {"sources": [one.first, one.second]}
                for one in audit.sources.find_disagreements()[:MOST_PAIRS]
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
        """Print how many of the rows that were asked for are wrong; of the suspects that was said before."""
        verdict, n_rows = self.audit.verdict, len(self.suspects)
        if n_rows != verdict.n_suspects:
            rows = f"These {n_rows:,} rows: " if n_rows > 1 else "This row: "
            print_result(f"{rows}{verdict.describe_yield(self.audit.expected_yield(self.suspects))}.")


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
