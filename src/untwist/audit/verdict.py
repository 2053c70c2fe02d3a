"""What is known of the labels of an audit, decided once: numbers that say what they rest on, and what was noticed.

`find_verdict` makes a `Verdict`, which `LabelAudit.verdict` keeps. A terminal, a notebook, a page, a command and a JSON
file render its statements and sentences; none of them decides anything, or computes a share of its own.

No data can tell wrong labels from hard rows for certain, so that there are three answers: noise was found, nothing was
found and little can be wrong, or neither. Every number says what it rests on. Errors that follow the features look like
right labels of other rows: no number allows for these, and none is told without saying so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from untwist.arguments import Array
from untwist.audit.correcting import doubt_correction, find_line
from untwist.audit.judging import Interval, find_unseen_share
from untwist.audit.reviewed import claims_noise, find_known_wrong, measure_known_wrong
from untwist.audit.statements import (
    ALL_LABELS,
    CLASSES_FOLLOW,
    GIVEN_NOISE,
    INDEPENDENT_ERRORS,
    JUDGEMENTS,
    ONE_PER_GROUP,
    OWN_LABEL_FIRST,
    Sentence,
    Statement,
    name_class,
    name_label,
    name_pair,
    write_conditions,
    write_counts,
    write_shares,
)
from untwist.audit.yields import count_wrong
from untwist.data.cells import list_some
from untwist.data.groups import read_groups
from untwist.display import write_share
from untwist.noise.bounds import bound_rates, bound_share
from untwist.noise.estimate import CLEAN_LIMIT
from untwist.sums import add_up_by_group

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["FORBIDDING", "LEAST_REPEATED", "MOST_TOLD", "Notice", "NoticeKind", "State", "Verdict", "find_verdict"]

#: Labels, or classes, whose share is printed, at most: the noisiest.
MOST_TOLD = 12

#: Pairs of a class and a label, sources that stand out, pairs of these, and parts of the table that are printed, at
#: most: of each kind the first ones.
MOST_NAMED = 4

#: Where fewer rows share their item with others it is not worth a word: some rows look alike by chance.
LEAST_REPEATED = 0.1


class State(Enum):
    """What is known of how many labels are wrong, in short."""

    #: Some labels are wrong, and how many is known; or the noise was given, and is believed.
    FOUND = "found"
    #: Whether labels are wrong or rows are hard cannot be told.
    UNDECIDED = "undecided"
    #: There is no sign of wrong labels, and few can be wrong if errors do not depend on features.
    NONE = "none"


class NoticeKind(Enum):
    """What stands in the way of telling how many labels are wrong, or was noticed on the way."""

    #: Rows have near-duplicates in other folds, so that models may have remembered labels.
    NEAR_DUPLICATES = "near-duplicates"
    #: Posteriors look as if they had seen the labels.
    SEEN_LABELS = "seen labels"
    #: A column that was taken for a feature looks like a source.
    SOURCE = "looks like a source"
    #: In parts of the table labels look wrong more often.
    UNEVEN = "uneven in parts"
    #: Confusions lie along an order of the classes.
    ORDER = "order of classes"
    #: Some rows were not judged.
    NOT_JUDGED = "not judged"
    #: Rows belong together in groups.
    GROUPS = "groups"


#: What forbids to tell how many labels are wrong.
FORBIDDING = (NoticeKind.NEAR_DUPLICATES, NoticeKind.SEEN_LABELS)
#: What forbids to say that there is no sign of wrong labels.
DOUBTING = (*FORBIDDING, NoticeKind.SOURCE, NoticeKind.UNEVEN)


class Notice(NamedTuple):
    """Something that stands in the way of telling how many labels are wrong, or was noticed on the way."""

    kind: NoticeKind
    sentence: Sentence


#: What to do next, by what is known: with the suspects, and where nothing is claimed.
REVIEW_SUSPECTS = Sentence(
    "audit.suspects() are the rows to review", "untwist review in place of untwist audit shows them, to decide on"
)
FIRST_ROWS = Sentence(
    "audit.suspects(budget=50) are the rows to look at first", "--budget 50 lists the rows to look at first"
)
SURPRISING_ROWS = Sentence(
    "audit.suspects(budget=50) are the most surprising ones", "--budget 50 lists the most surprising ones"
)
SAY_GROUPS = Sentence(
    "audit_labels(..., groups=...) keeps together the rows that are about one thing",
    "--groups COLUMN keeps together the rows that are about one thing",
)
UNSEEN_POSTERIORS = Sentence.alike("give posteriors of models that have not seen the labels")

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
    share : Statement
        The share of all labels that are wrong; its range begins at 0 unless noise was found.
    by_class : tuple of Statement
        The share of each true class that bears another label; where no noise was found, its upper bound. None where
        something forbids to tell.
    by_label : tuple of Statement
        The share of the rows of each given label that bear it wrongly, where noise was found.
    pairs : tuple of Statement
        The share of a true class that bears some other label, of three classes or more, where noise was found: pairs
        that are more frequent than they were if wrong labels were spread evenly, those of most rows first.
    upper_bound : Statement
        The largest share of wrong labels that is not excluded if errors do not depend on features. A few are never
        excluded: see `find_unseen_share`. Labels that a review found wrong come on top.
    most_wrong : int or None
        How many labels may be wrong at most, under the same condition; None where noise was found, where nothing is
        excluded, and where weights are not all 1.
    n_suspects : int
        How many rows `LabelAudit.suspects` names.
    suspects_wrong : Statement
        How many of these are wrong.
    notices : tuple of Notice
        What stands in the way of telling more, or was noticed on the way.
    sources : tuple of Sentence
        Which sources stand out, and what several labels of an item add.
    review : tuple of Sentence
        What was reviewed, what was found, and what is wrong still.
    next_step : Sentence
        What to do next.
    is_chance : bool
        Whether the labels are outcomes of chance: none is called wrong then.
    why_not_corrected : str
        Why labels are not to be replaced without a look; empty where nothing speaks against it. Of several classes
        right labels may look wrong where a class has fewer than 50 rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from untwist.audit import audit_labels
    >>> verdict = audit_labels(*load_breast_cancer(return_X_y=True)).verdict
    >>> verdict.state
    <State.NONE: 'none'>
    >>> verdict.upper_bound
    Statement(3.4 % (0 % to 3.4 %) of all labels; rests on: errors do not depend on features, no class bears ...)
    """

    state: State
    n_judged: int
    share: Statement
    by_class: tuple[Statement, ...]
    by_label: tuple[Statement, ...]
    pairs: tuple[Statement, ...]
    upper_bound: Statement
    most_wrong: int | None
    n_suspects: int
    suspects_wrong: Statement
    notices: tuple[Notice, ...]
    sources: tuple[Sentence, ...]
    review: tuple[Sentence, ...]
    next_step: Sentence
    is_chance: bool
    why_not_corrected: str

    def __str__(self) -> str:
        return self.describe()

    @property
    def is_found(self) -> bool:
        """Whether noise was found, and how many labels are wrong is known."""
        return self.state is State.FOUND

    @property
    def is_bounded(self) -> bool:
        """Whether some share of wrong labels is excluded: not where models may have seen the labels."""
        return self.upper_bound.high < 1.0

    def notes(self, *kinds: NoticeKind) -> tuple[Notice, ...]:
        """Return the notices of some kinds.

        Parameters
        ----------
        *kinds : NoticeKind
            The kinds.

        Returns
        -------
        tuple of Notice
        """
        return tuple(one for one in self.notices if one.kind in kinds)

    # ---- words ----

    @property
    def sentence(self) -> str:
        """What is known of the labels, with what that rests on."""
        n = f"{self.n_judged:,}"
        if self.is_chance:
            return f"{n} outcomes of chance: none is called wrong, some are surprising"
        if self.is_found:
            return f"{n} labels, about {self.claim}"
        if self.state is State.UNDECIDED:
            bound = f"; {self.bound}" if self.is_bounded else ""
            return f"{n} labels: whether labels are wrong or rows are hard cannot be told from these data{bound}"
        return (
            f"{n} labels: no sign of wrong labels; {self.bound}; errors that follow the features cannot be seen "
            "without looking at rows"
        )

    @property
    def claim(self) -> str:
        """How many labels are wrong where noise was found, with what that rests on."""
        share = self.share
        low, high = write_share(share.low), write_share(share.high)
        return f"{write_share(share.value)} wrong ({low} to {high}),{write_conditions(share.rests_on)}"

    @property
    def bound(self) -> str:
        """How many labels are wrong at most, with what that rests on."""
        bound = self.upper_bound
        return f"at most {write_share(bound.high)} are wrong{write_conditions(bound.rests_on)}"

    @property
    def brief(self) -> str:
        """The same in a few words, for a line that says of what."""
        if self.is_chance:
            return "outcomes of chance"
        if self.is_found:
            return self.claim
        bound = self.upper_bound
        known = f", at most {write_share(bound.high)} wrong{write_conditions(bound.rests_on)}"
        return f"{self.state.value}{known if self.is_bounded else ''}"

    @property
    def suspects(self) -> str:
        """How many suspects there are, and how many of them are wrong; nothing where there are none."""
        if not self.n_suspects:
            return ""
        number = f"{self.n_suspects:,} suspect{'s' if self.n_suspects > 1 else ''}"
        return f"{number}, {self.describe_yield(self.suspects_wrong)}"

    def describe_yield(self, number: Statement) -> str:
        """Say how many of some rows are wrong.

        Parameters
        ----------
        number : Statement
            What `LabelAudit.expected_yield` returns.

        Returns
        -------
        str
            The words, without a full stop.
        """
        if self.is_chance:
            return "none of which is called wrong"
        about = "about " if number.low > 0 else ""
        # Where noise was found, what that rests on is said of all labels.
        conditions = "" if self.is_found else write_conditions(number.rests_on)
        return f"{about}{write_counts(number)} of them wrong{conditions}"

    def describe_label(self, one: Statement) -> str:
        """Say how many of the rows of a given label bear it wrongly.

        Parameters
        ----------
        one : Statement
            One of `by_label`.

        Returns
        -------
        str
        """
        return f"of labels that say {one.name}, {write_shares(one)} are wrong"

    def describe_shares(self) -> list[str]:
        """Say which classes, labels and pairs are noisy, the noisiest of each kind.

        Returns
        -------
        list of str
            Rates of true classes and of given labels in words of their own; none where no noise was found.
        """
        if not self.is_found:
            return []
        classes = self.by_class if len(self.by_class) == 2 else ()
        lines = [f"{write_shares(one)} of true {one.name} bear another label" for one in classes]
        noisiest = sorted(self.by_label, key=lambda one: -one.value)[:MOST_TOLD]
        lines += [self.describe_label(one) for one in self.by_label if one in noisiest]
        n_others = len(self.by_label) - MOST_TOLD
        lines += [f"... and less of the {n_others} other labels"] if n_others > 0 else []
        return lines + [f"{one.of}: {write_shares(one)}" for one in self.pairs[:MOST_NAMED]]

    def describe(self, *, for_command: bool = False, lists_rows: bool = False, leaves_out: tuple[str, ...] = ()) -> str:
        """Say in words what is known of the labels, where it comes from, and who gave the wrong ones.

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
        first = "; ".join(words for words in (self.sentence, self.suspects) if words)
        if not lists_rows and not self.notes(*FORBIDDING):  # These say themselves what to do.
            first += f"; {self.next_step.tell(for_command=for_command)}"
        told = [*(one.sentence for one in self.notices), *self.sources, *self.review]
        lines = [*self.describe_shares(), *(one.tell(for_command=for_command) for one in told)]
        return "\n".join([first, *(f"  {line}" for line in lines if line not in leaves_out)])

    def to_dict(self) -> dict[str, Any]:
        """Return the same for machines.

        Returns
        -------
        dict
            Advice names options of the command line.
        """
        return {
            "state": self.state.value,
            "words": self.sentence,
            "labels": self.n_judged,
            "share": self.share.to_dict(),
            "by_class": [one.to_dict() for one in self.by_class],
            "by_label": [one.to_dict() for one in self.by_label],
            "pairs": [one.to_dict() for one in self.pairs],
            "upper_bound": self.upper_bound.to_dict(),
            "suspects": self.n_suspects,
            "suspects_wrong": self.suspects_wrong.to_dict(),
            "notices": [{"kind": one.kind.value, "words": one.sentence.command} for one in self.notices],
            "next_step": self.next_step.command,
            "chance": self.is_chance,
        }


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
    n_judged = len(audit.context.take_judged(np.arange(len(audit.given))))
    notices = tuple(_find_notices(audit, n_judged))
    is_found = claims_noise(audit)
    is_told = is_found or not (audit.context.chance or any(one.kind in FORBIDDING for one in notices))
    rates = _bound_rates(audit)
    bound = _bound_share(audit, rates) if is_told else Statement(1.0, 0.0, 1.0)
    if audit.context.chance:  # No outcome is wrong.
        bound = Statement(0.0, 0.0, 0.0)
    state = _find_state(audit, is_found, bound, notices)
    rests_on = _find_conditions(audit) if is_found else bound.rests_on
    share, low, high = (0.0, 0.0, 0.0) if audit.context.chance else audit.noise_rate
    most_wrong = None if is_found else _find_most_wrong(audit, bound, n_judged)
    suspects = audit.suspects()
    return Verdict(
        state=state,
        n_judged=n_judged,
        share=Statement(share, *((low, high) if is_found else (0.0, bound.high)), of=ALL_LABELS, rests_on=rests_on),
        by_class=tuple(_find_class_shares(audit, rates, is_found, rests_on)) if is_told else (),
        by_label=tuple(_find_label_shares(audit, rests_on)) if is_found else (),
        pairs=tuple(_find_pairs(audit, rests_on)) if is_found else (),
        upper_bound=bound,
        most_wrong=most_wrong,
        n_suspects=len(suspects),
        suspects_wrong=count_wrong(audit, suspects, is_found=is_found, most_wrong=most_wrong, rests_on=rests_on),
        notices=notices,
        sources=tuple(_describe_sources(audit, is_found, is_told)),
        review=tuple(_describe_review(audit)),
        next_step=_find_next_step(audit, is_found, len(suspects), notices),
        is_chance=audit.context.chance,
        why_not_corrected=doubt_correction(audit),
    )


# ---- numbers ----


def _find_state(audit: LabelAudit, is_found: bool, bound: Statement, notices: tuple[Notice, ...]) -> State:
    """Decide on the answer in short."""
    if is_found:
        return State.FOUND
    if audit.context.chance:
        return State.NONE
    is_doubted = audit.noise.found or any(one.kind in DOUBTING for one in notices) or find_known_wrong(audit).any()
    return State.UNDECIDED if is_doubted or bound.high >= CLEAN_LIMIT else State.NONE


def _find_conditions(audit: LabelAudit, *assumed: str) -> tuple[str, ...]:
    """Return what the estimate rests on, or a bound that assumes something else."""
    if audit.noise.is_given:
        return (GIVEN_NOISE,)
    rests_on = assumed or (INDEPENDENT_ERRORS, CLASSES_FOLLOW, JUDGEMENTS)
    if audit.context.groups is not None:
        rests_on += (ONE_PER_GROUP,)
    if audit.reviewed is not None:
        rests_on += (f"{np.count_nonzero(audit.reviewed):,} rows that were reviewed",)
    return rests_on


def _bound_rates(audit: LabelAudit) -> Array:
    """Return the highest rate of each true class that the surest rows do not exclude.

    Which rows were reviewed depends on their labels, so that all count, with the labels that they had before.
    """
    context, counted = audit.context, np.flatnonzero(audit.weight > 0)
    labels = audit.label_indices.copy()
    if audit.reviewed is not None:
        before, reviewed = context.before_review, audit.reviewed
        labels[reviewed] = -1 if before is None else np.searchsorted(audit.classes, before[reviewed])
    groups = None
    if context.groups is not None:
        groups = read_groups(context.groups, len(labels)).number_rows()[counted]
    return bound_rates(audit.posterior[counted], labels[counted], groups=groups)


def _bound_share(audit: LabelAudit, rates: Array) -> Statement:
    """Return the largest share of wrong labels that is not excluded."""
    known = measure_known_wrong(audit)
    if audit.noise.is_given:
        high = audit.noise_rate[2]
    else:
        weights = add_up_by_group(audit.weight, audit.label_indices, len(audit.classes))
        unseen = find_unseen_share(np.count_nonzero(audit.weight) / audit.context.rows_per_case)
        hidden = audit.context.hidden_source
        as_source = 0.0 if hidden is None else hidden.interval_as_source[1]
        by_rates = bound_share(rates, weights / weights.sum())
        high = min(1.0, known + max(by_rates, unseen, as_source, audit.noise_rate[2] - known))
    return Statement(high, known, high, rests_on=_find_conditions(audit, INDEPENDENT_ERRORS, OWN_LABEL_FIRST))


def _find_most_wrong(audit: LabelAudit, bound: Statement, n_judged: int) -> int | None:
    """Return how many of all labels may be wrong at most, where that is known."""
    weight = audit.weight if audit.context.judged is None else audit.weight[audit.context.judged]
    if bound.high == 1.0 or not np.all(weight == 1):
        return None
    return min(n_judged, math.ceil(bound.high * n_judged))


def _find_class_shares(audit: LabelAudit, rates: Array, is_found: bool, rests_on: tuple[str, ...]) -> list[Statement]:
    """Return the share of each true class that bears another label; where no noise was found, its upper bound."""
    noise, names = audit.noise, audit.classes.tolist()
    shares: list[Interval] = noise.list_class_shares()
    if not is_found:
        bounded = _find_conditions(audit, INDEPENDENT_ERRORS, OWN_LABEL_FIRST)
        return [
            Statement(share, 0.0, max(float(rate), high), of=name_class(name), rests_on=bounded)
            for name, (share, _, high), rate in zip(names, shares, rates, strict=True)
        ]
    if len(names) > 2 and not noise.is_given:
        # No estimate of a class excludes less than so many rows of it can tell.
        n_rows = [np.count_nonzero((audit.predicted == name) & (audit.weight > 0)) for name in audit.classes]
        shares = [
            (share, low, max(high, find_unseen_share(int(n) / audit.context.rows_per_case)))
            for (share, low, high), n in zip(shares, n_rows, strict=True)
        ]
    return [Statement(*one, of=name_class(name), rests_on=rests_on) for name, one in zip(names, shares, strict=True)]


def _find_label_shares(audit: LabelAudit, rests_on: tuple[str, ...]) -> list[Statement]:
    """Return the share of the rows of each given label that bear it wrongly."""
    return [Statement(*one, of=name_label(name), rests_on=rests_on) for name, one in audit.rate_by_label.items()]


def _find_pairs(audit: LabelAudit, rests_on: tuple[str, ...]) -> list[Statement]:
    """Return the share of a true class that bears some other label, for each pair that stands out and was found."""
    is_found = audit.noise.found_pairs
    place = {name: position for position, name in enumerate(audit.classes.tolist())}
    return [
        Statement(one.share, one.low, one.high, of=name_pair(one.truth, one.label), rests_on=rests_on)
        for one in audit.confusions()
        if one.stands_out and is_found[place[one.truth], place[one.label]]
    ]


# ---- what stands in the way, and what was noticed ----


def _find_next_step(audit: LabelAudit, is_found: bool, n_suspects: int, notices: tuple[Notice, ...]) -> Sentence:
    """Decide what to do next."""
    kinds = [one.kind for one in notices]
    if audit.context.chance:
        return SURPRISING_ROWS
    if is_found and n_suspects:
        return REVIEW_SUSPECTS
    if NoticeKind.NEAR_DUPLICATES in kinds:
        return SAY_GROUPS
    return UNSEEN_POSTERIORS if NoticeKind.SEEN_LABELS in kinds else FIRST_ROWS


def _find_notices(audit: LabelAudit, n_judged: int) -> list[Notice]:
    """Return what stands in the way of telling how many labels are wrong, and what was noticed on the way."""
    context, notices = audit.context, []
    if audit.judge.looks_in_sample:
        words = f"the posteriors look as if they had seen the labels: {audit.judge.in_sample_reason}"
        told = (
            f"{words}; wrong labels that were seen look right, so that too few are found: give posteriors out of fold"
        )
        notices.append(Notice(NoticeKind.SEEN_LABELS, Sentence.alike(told)))
    if context.twins is not None:
        told_twins = Sentence(*(context.twins.describe(for_command=one) for one in (False, True)))
        notices.append(Notice(NoticeKind.NEAR_DUPLICATES, told_twins))
    if (hidden := context.hidden_source) is not None:
        share = write_shares((hidden.share_as_source, *hidden.interval_as_source))
        words = f"with {hidden.name} taken for a source {share} of all labels look wrong"
        advice = (f"{hidden.advise(for_command=one)}; {words}" for one in (False, True))
        notices.append(Notice(NoticeKind.SOURCE, Sentence(*advice)))
    slices = [] if audit.table.encoder is None or context.chance else audit.slices()
    for one in slices[:MOST_NAMED]:
        told = f"labels look wrong more often (or are much harder to tell): {one}"
        notices.append(Notice(NoticeKind.UNEVEN, Sentence.alike(told)))
    if line := find_line(audit):
        told = (
            f"most confusions are between neighbours in the order {list_some(line, MOST_TOLD)}: there rows that are "
            "hard to tell from a neighbour look the same as wrong labels"
        )
        notices.append(Notice(NoticeKind.ORDER, Sentence.alike(told)))
    if context.judged is not None:
        n_rows = len(audit.given)
        told = (
            f"{n_rows - n_judged:,} of the {n_rows:,} labels are not judged, as no fold sets them aside: nothing is "
            "said of them"
        )
        notices.append(Notice(NoticeKind.NOT_JUDGED, Sentence.alike(told)))
    if context.groups is not None:
        told = _describe_groups(audit, context.groups.tolist())
        notices.append(Notice(NoticeKind.GROUPS, Sentence.alike(told)))
    return notices


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


# ---- sources and reviews ----


def _describe_sources(audit: LabelAudit, is_found: bool, is_told: bool) -> list[Sentence]:
    """Which sources stand out, and what several labels of an item add."""
    if audit.context.by_source is None:
        return []
    lines = []
    if audit.sources.n_unknown:
        lines.append(f"{audit.sources.n_unknown:,} labels are of no known source: they are judged as those of all")
    sources = audit.sources.rate()
    bad = [one for one in sources if one.stands_out]
    if not bad:
        # The shares of single sources differ by chance, and most where labels are few: only that of all is told.
        in_common = f": of the labels of all {write_shares(audit.noise_rate)} are wrong"
        shares = in_common if is_found and len(sources) > 1 else ""
        unknown_too = f"which of {len(sources):,} are noisier than the others cannot be told either"
        none_found = f"no source stands out among {len(sources):,}{shares}"
        lines.append(none_found if is_told or audit.noise.found else unknown_too)
    lines += [str(replace(one, tells_how_many=is_found)) for one in bad[:MOST_NAMED]]
    told = [Sentence.alike(line) for line in lines]
    if len(bad) > MOST_NAMED:
        more = f"... and {len(bad) - MOST_NAMED:,} more sources stand out: "
        told.append(Sentence(more + ALL_SOURCES.python, more + ALL_SOURCES.command))
    if audit.sources.share_repeated >= LEAST_REPEATED:
        number = f"{audit.sources.labels_per_item:.2g} labels on average"
        told.append(Sentence.alike(f"the truth of each item comes from its features and {number}"))
        apart = [one for one in audit.sources.find_disagreements() if one.stands_out][:MOST_NAMED]
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
