"""What is known of the labels of an audit, decided once and said in words: all surfaces render it.

`find_verdict` makes a `Verdict`, which `LabelAudit.verdict` keeps. A terminal prints its sentences, a page chooses its
own by `state`, and a JSON file has its numbers; none of them decides anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from untwist.audit.correcting import doubt_correction, find_likely_wrong
from untwist.audit.judging import Interval, find_unseen_share, widen_interval
from untwist.audit.reviewed import find_known_wrong, measure_known_wrong
from untwist.data.twins import NOTHING_KNOWN, SOME_WRONG
from untwist.noise.estimate import CLEAN_LIMIT

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["FIRST_ROWS", "LEAST_REPEATED", "MOST_LABELS", "Sentence", "State", "Verdict", "find_verdict"]

#: Labels whose share of wrong ones is printed, at most: the noisiest.
MOST_LABELS = 12

#: Pairs of a class and a label that are printed, at most.
MOST_CONFUSIONS = 4

#: Where fewer rows share their item with others it is not worth a word: some rows look alike by chance.
LEAST_REPEATED = 0.1

#: Sources that stand out, or pairs of them, that are printed, at most.
MOST_SOURCES = 4


class State(Enum):
    """What is known of how many labels are wrong, in short."""

    #: The rates were given, and are believed.
    GIVEN = "given"
    #: Noise was found, and its share is known.
    FOUND = "found"
    #: Noise was found, and its share cannot be told, as rows have near-duplicates in other folds.
    SOME = "some"
    #: No noise was found, and none can be where rows have near-duplicates in other folds.
    UNKNOWN = "unknown"
    #: No noise was found, by posteriors that look as if they had seen the labels.
    SEEN = "seen"
    #: No noise was found with a column taken as a feature that looks like a source.
    AS_SOURCE = "as source"
    #: No noise was found that is the same everywhere; in parts of the table labels look wrong more often.
    UNEVEN = "uneven"
    #: There is no noise to speak of.
    CLEAN = "clean"
    #: There is no noise to speak of that is the same everywhere; uneven noise is not excluded.
    NO_SIGN = "no sign"
    #: Whether labels are wrong or rows are hard cannot be told.
    UNCLEAR = "unclear"


class Sentence(NamedTuple):
    """A sentence whose advice names Python, and the same with options of the command line."""

    python: str
    command: str

    @classmethod
    def alike(cls, words: str) -> Sentence:
        """Return a sentence that is the same for both.

        Parameters
        ----------
        words : str
            The sentence.

        Returns
        -------
        Sentence
        """
        return cls(words, words)

    def tell(self, *, for_command: bool) -> str:
        """Return the words for the command line, or those for Python.

        Parameters
        ----------
        for_command : bool
            Which of the two.

        Returns
        -------
        str
        """
        return self.command if for_command else self.python


#: How to ask for rows where no label is suspect.
FIRST_ROWS = Sentence(
    "suspects(budget=...) are the rows to look at first", "--budget 50 lists the rows to look at first"
)

#: Where the sources are that stand out and are not printed.
ALL_SOURCES = Sentence("sources.rate() has them all", "--json lists them all")


@dataclass(frozen=True)
class Verdict:
    """What may be said of the labels of an audit.

    Parameters
    ----------
    state : State
        The answer in short.
    n_judged : int
        How many labels it is about.
    is_found : bool
        Whether noise was found.
    tells_how_many : bool
        Whether the share of wrong labels can be told: not where rows have near-duplicates in other folds, unless the
        rates of noise were given. The share of an audit is then a lower limit at best.
    share : Interval
        The share of wrong labels, with its 95 % interval.
    share_by_class : tuple of Interval
        The share of each true class that bears another label, with its 95 % interval.
    highest_share : float
        The largest share of wrong labels that is not excluded, by noise of any kind that is looked for. A few wrong
        labels are never excluded: see `find_unseen_share`. Where a column looks like a source, neither is what would be
        wrong if it is one. Labels that a review found wrong come on top.
    most_wrong : int or None
        How many of all labels may be wrong at most; None where noise was found, where rows have near-duplicates in
        other folds, and where weights are not all 1.
    noise : str
        How noisy the labels are; where no noise was found, what is not excluded.
    headline : str
        The same with the number of labels, and with how many are suspects where noise was found.
    by_label : tuple of str
        How noisy the rows of the noisiest labels are.
    confusions : tuple of str
        Which class is often labelled as which other.
    rests_on : tuple of Sentence
        What speaks against those who judged: that they may have seen the labels, or not all rows.
    sources : tuple of Sentence
        Which sources stand out, and what several labels of an item add; where no sources were given, what a column says
        that looks like one.
    review : tuple of Sentence
        What was reviewed, what was found, and what is wrong still.
    next_step : Sentence or None
        How to ask for rows to look at, where no label is suspect.
    why_not_corrected : str
        Why labels are not to be replaced without a look; empty where nothing speaks against it. Of several classes
        right labels may look wrong where a class has fewer than 50 rows, and where most confusions are between
        neighbours in the natural order of the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from untwist.audit import audit_labels
    >>> verdict = audit_labels(*load_breast_cancer(return_X_y=True)).verdict
    >>> verdict.state
    <State.CLEAN: 'clean'>
    >>> print(f"{verdict.highest_share:.1%}")
    3.3%
    """

    state: State
    n_judged: int
    is_found: bool
    tells_how_many: bool
    share: Interval
    share_by_class: tuple[Interval, ...]
    highest_share: float
    most_wrong: int | None
    noise: str
    headline: str
    by_label: tuple[str, ...]
    confusions: tuple[str, ...]
    rests_on: tuple[Sentence, ...]
    sources: tuple[Sentence, ...]
    review: tuple[Sentence, ...]
    next_step: Sentence | None
    why_not_corrected: str

    def __str__(self) -> str:
        return self.describe()

    @property
    def knows_share(self) -> bool:
        """Whether the share of wrong labels is known: noise was found, and `tells_how_many`."""
        return self.is_found and self.tells_how_many

    def describe(self, *, for_command: bool = False, lists_rows: bool = False, leaves_out: tuple[str, ...] = ()) -> str:
        """Say in words how noisy the labels are, where most, and who gave the wrong ones.

        Parameters
        ----------
        for_command : bool, default False
            Whether advice names options of the command line rather than Python.
        lists_rows : bool, default False
            Whether rows are listed that were asked for, so that nobody need be told how to.
        leaves_out : tuple of str
            Lines that something else shows.

        Returns
        -------
        str
            Several lines.
        """
        first = self.headline
        if self.next_step is not None and not lists_rows:
            first += f"; {self.next_step.tell(for_command=for_command)}"
        told = [*self.rests_on, *self.sources, *self.review]
        lines = [*self.by_label, *self.confusions, *(one.tell(for_command=for_command) for one in told)]
        return "\n".join([first, *(f"  {line}" for line in lines if line not in leaves_out)])

    def allow_for_parts(self) -> Verdict:
        """Return the same where labels look wrong more often in parts of the table, so that they are not all alike.

        Returns
        -------
        Verdict
        """
        is_even = self.state in (State.CLEAN, State.NO_SIGN, State.UNCLEAR)
        return replace(self, state=State.UNEVEN) if is_even else self


def find_verdict(audit: LabelAudit) -> Verdict:
    """Decide what may be said of the labels of an audit.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    Verdict
    """
    noise, context = audit.noise, audit.context
    n_judged = len(context.take_judged(np.arange(len(audit.given))))
    tells = context.can_tell(noise)
    left = _find_highest_share_left(audit)
    highest = min(1.0, measure_known_wrong(audit) + left)
    words = _describe_noise(audit, tells)
    by_label = _describe_labels(audit) if noise.found and tells else ()
    return Verdict(
        state=_find_state(audit, tells, highest),
        n_judged=n_judged,
        is_found=bool(noise.found),
        tells_how_many=tells,
        share=audit.noise_rate,
        share_by_class=_find_class_shares(audit),
        highest_share=highest,
        most_wrong=_find_most_wrong(audit, tells, left, n_judged),
        noise=words,
        headline=_write_headline(audit, tells, words, n_judged),
        by_label=by_label,
        confusions=_describe_confusions(audit) if by_label else (),
        rests_on=tuple(_describe_judge(audit, n_judged)),
        sources=tuple(_describe_sources(audit, tells)),
        review=tuple(_describe_review(audit)),
        next_step=None if noise.found or context.twins is not None else FIRST_ROWS,
        why_not_corrected=doubt_correction(audit),
    )


# ---- numbers ----


def _find_highest_share_left(audit: LabelAudit) -> float:
    """Return the largest share of all labels that is not excluded to be wrong beside those that a review found."""
    unseen = find_unseen_share(np.count_nonzero(audit.weight) / audit.context.rows_per_case)
    uneven = 0.0 if audit.noise.found else audit.noise.uneven_limit
    hidden = audit.context.hidden_source
    as_source = 0.0 if hidden is None else hidden.interval_as_source[1]
    return max(audit.noise_rate[2] - measure_known_wrong(audit), uneven, unseen, as_source)


def _find_most_wrong(audit: LabelAudit, tells: bool, share_left: float, n_judged: int) -> int | None:
    """Return how many of all labels may be wrong at most, where that is known."""
    weight = audit.weight if audit.context.judged is None else audit.weight[audit.context.judged]
    if audit.noise.found or not tells or not np.all(weight == 1):
        return None
    return min(n_judged, math.ceil(share_left * n_judged) + int(np.count_nonzero(find_known_wrong(audit))))


def _find_class_shares(audit: LabelAudit) -> tuple[Interval, ...]:
    """Return the share of each true class that bears another label, with its 95 % interval."""
    noise, context = audit.noise, audit.context
    doubted = 0.0 if context.twins is None else context.twins.share
    if len(audit.classes) == 2:
        return tuple(widen_interval(one, doubted) for one in noise.list_class_shares())
    n_rows = [np.count_nonzero((audit.predicted == name) & (audit.weight > 0)) for name in audit.classes]
    rates = [
        (share, low, high if noise.is_given else max(high, find_unseen_share(int(n) / context.rows_per_case)))
        for (share, low, high), n in zip(noise.list_class_shares(), n_rows, strict=True)
    ]
    return tuple(widen_interval(one, doubted) for one in rates)


def _find_state(audit: LabelAudit, tells: bool, highest_share: float) -> State:
    """Decide on the answer in short, as far as all rows are alike: see `Verdict.allow_for_parts`."""
    noise = audit.noise
    if noise.found:
        return State.GIVEN if noise.is_given else State.FOUND if tells else State.SOME
    if audit.context.twins is not None:
        return State.UNKNOWN
    if audit.judge.looks_in_sample:
        return State.SEEN
    if audit.context.hidden_source is not None:
        return State.AS_SOURCE
    # Uneven noise looks like hard rows, so that few of them must be in doubt. Of several classes nobody can say that
    # labels are clean: noise between two of them may show in too few rows.
    still_wrong = audit.review is not None and audit.review.still_wrong > 0
    may_be_clean = len(audit.classes) == 2 and not still_wrong
    if may_be_clean and max(noise.even_limit, highest_share) < CLEAN_LIMIT:
        return State.CLEAN
    return State.NO_SIGN if noise.even_limit < CLEAN_LIMIT else State.UNCLEAR


# ---- words ----


def _write_headline(audit: LabelAudit, tells: bool, noise: str, n_judged: int) -> str:
    """How noisy the labels are, and how many are suspects where noise was found."""
    as_source = _describe_as_source(audit)
    if not audit.noise.found:
        return f"{n_judged} labels: {noise}{as_source}"
    suspects = audit.suspects()
    prefix = "" if audit.reviewed is None else "of those not reviewed "
    doubted = f"{prefix}{len(suspects)} are suspects"
    if len(audit.classes) == 2:
        doubted = f"{prefix}{len(find_likely_wrong(audit, audit.ranking))} are more likely wrong than right"
    elif tells:
        doubted += f", about {audit.expect_wrong(suspects):,.0f} of them truly wrong"
    if not tells:
        return f"{n_judged} labels: {SOME_WRONG}; {doubted}"
    rate, low, high = audit.noise_rate
    return f"{n_judged} labels, {rate:.1%} of them wrong ({low:.1%} to {high:.1%}){as_source}; {doubted}"


def _describe_noise(audit: LabelAudit, tells: bool) -> str:
    """How noisy the labels are, with the names of the classes."""
    if not tells:
        return SOME_WRONG if audit.noise.found else NOTHING_KNOWN
    if audit.context.by_source is None or not audit.noise.found or len(audit.classes) == 2:
        return audit.noise.describe(audit.classes)
    share, low, high = audit.noise_rate
    return f"wrong labels: {share:.1%} ({low:.1%} to {high:.1%}) of all"


def _describe_as_source(audit: LabelAudit) -> str:
    """How many labels look wrong if a column that looks like a source is taken for one; it goes on from the noise."""
    hidden = audit.context.hidden_source
    if hidden is None:
        return ""
    low, high = hidden.interval_as_source
    share = f"{hidden.share_as_source:.1%} ({low:.1%} to {high:.1%})"
    return f", with {hidden.name} taken as a feature; {share} wrong if {hidden.name} is taken for a source"


def _describe_labels(audit: LabelAudit) -> tuple[str, ...]:
    """How noisy the rows of each label are, of the noisiest ones."""
    noisiest = sorted(audit.rate_by_label, key=lambda label: -audit.rate_by_label[label][0])[:MOST_LABELS]
    return tuple(
        f"of those that say {label}: {rate:.1%} ({low:.1%} to {high:.1%})"
        for label, (rate, low, high) in audit.rate_by_label.items()
        if label in noisiest
    )


def _describe_confusions(audit: LabelAudit) -> tuple[str, ...]:
    """That other labels are less noisy, and which class is often labelled as which other."""
    n_others = len(audit.classes) - MOST_LABELS
    others = [f"... and less of the {n_others} other labels"] if n_others > 0 else []
    return *others, *[str(one) for one in audit.confusions() if one.stands_out][:MOST_CONFUSIONS]


def _describe_judge(audit: LabelAudit, n_judged: int) -> list[Sentence]:
    """What speaks against those who judged: that they may have seen the labels, or not all rows."""
    context, lines = audit.context, []
    if audit.judge.looks_in_sample:
        words = f"the posteriors look as if they had seen the labels: {audit.judge.in_sample_reason}"
        lines.append(
            Sentence.alike(
                f"{words}; wrong labels that were seen look right, so that too few are found: give posteriors out of "
                "fold"
            )
        )
    if context.twins is not None:
        lines.append(Sentence(*(context.twins.describe(for_command=one) for one in (False, True))))
    if context.judged is not None:
        n_rows = len(audit.given)
        lines.append(
            Sentence.alike(
                f"{n_rows - n_judged:,} of the {n_rows:,} labels are not judged, as no fold sets them aside: nothing "
                "is said of them"
            )
        )
    if context.groups is not None:
        lines.append(Sentence.alike(_describe_groups(audit, context.groups.tolist())))
    return lines


def _describe_groups(audit: LabelAudit, groups: list[object]) -> str:
    """How many groups there are, and for how many independent rows they count."""
    counted = audit.weight > 0
    named = [one for one, counts in zip(groups, counted.tolist(), strict=True) if counts and one is not None]
    known = set(named)
    if len(known) == len(named):
        return (
            f"none of the {len(known):,} groups has several rows: nothing keeps rows together that are about one thing"
        )
    cases = np.count_nonzero(counted) / audit.context.rows_per_case
    return (
        f"rows of {len(known):,} groups are judged by models that have not seen their group; as rows of a group err "
        f"together, they count for about {cases:,.0f}"
    )


def _describe_sources(audit: LabelAudit, tells: bool) -> list[Sentence]:
    """Which sources stand out, and what several labels of an item add."""
    hidden = audit.context.hidden_source
    if audit.context.by_source is None:
        return [] if hidden is None else [Sentence(hidden.advise(), hidden.advise(for_command=True))]
    lines = []
    if audit.sources.n_unknown:
        lines.append(f"{audit.sources.n_unknown:,} labels are of no known source: they are judged as those of all")
    sources = audit.sources.rate()
    bad = [one for one in sources if one.stands_out]
    if not bad:
        # The shares of single sources differ by chance, and most where labels are few: only that of all is told.
        share, low, high = audit.noise_rate
        in_common = f": of the labels of all {share:.1%} ({low:.1%} to {high:.1%}) are wrong"
        shares = in_common if audit.noise.found and tells and len(sources) > 1 else ""
        unknown_too = f"which of {len(sources):,} are noisier than the others cannot be told either"
        none_found = f"no source stands out among {len(sources):,}{shares}"
        lines.append(none_found if tells or audit.noise.found else unknown_too)
    lines += map(str, bad[:MOST_SOURCES])
    told = [Sentence.alike(line) for line in lines]
    if len(bad) > MOST_SOURCES:
        more = f"... and {len(bad) - MOST_SOURCES:,} more sources stand out: "
        told.append(Sentence(more + ALL_SOURCES.python, more + ALL_SOURCES.command))
    if audit.sources.share_repeated >= LEAST_REPEATED:
        number = f"{audit.sources.labels_per_item:.2g} labels on average"
        told.append(Sentence.alike(f"the truth of each item comes from its features and {number}"))
        apart = [one for one in audit.sources.find_disagreements() if one.stands_out][:MOST_SOURCES]
        told += [Sentence.alike(str(one)) for one in apart]
    return told


def _describe_review(audit: LabelAudit) -> list[Sentence]:
    """What was reviewed, what was found, and what is wrong still."""
    review = audit.review
    if review is None:
        return []
    rows = "1 row is" if review.rows == 1 else f"{review.rows:,} rows are"
    told = [Sentence.alike(f"{rows} reviewed: {review.decided}")]
    if review.still_wrong:
        them = "it" if review.still_wrong == 1 else "them"
        changes = (f"{review.held}: {way} changes {them}" for way in ("apply(decisions)", "untwist apply"))
        told.append(Sentence(*changes))
    elif review.held:
        told.append(Sentence.alike(review.held))
    return told + ([Sentence.alike(review.left)] if review.left else [])
