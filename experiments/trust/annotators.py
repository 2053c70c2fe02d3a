"""Several labels for one item: who finds the truth? Annotators of unequal skill; features tell much, little or nothing.

Dawid-Skene is crowd-kit's. cleanlab's consensus is CROWDLAB's, with posteriors that a careful user has: XGBoost, set up
as in `experiments.peers` and trained on the majority's labels, judges rows that it has not seen; then those of untwist,
and both in cleanlab's ensemble.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from experiments.datasets import Labels
from experiments.peers import PEERS, find_version, predict_unseen, search
from experiments.protocol import make_rng
from experiments.tables import TextTable
from experiments.trust.parts import Job, Part, write_number
from experiments.trust.worlds import flip, simulate
from untwist import UntwistClassifier
from untwist.arguments import Array
from untwist.audit import audit_labels
from untwist.noise import NoiseModel
from untwist.noise.sources import estimate_by_source

__all__ = ["ANNOTATORS", "AnnotatorsRow", "draw_votes"]

NAN = math.nan
#: Worlds by what their features tell.
WORLDS = {2: {"much": "easy", "little": "hard", "nothing": "nothing"}}
WORLDS[4] = {tells: f"four-{world}" for tells, world in WORLDS[2].items()}
#: Labels of each item.
LABELS_PER_ITEM = (2, 3, 5)
SEEDS = 10
ITEMS = 1_000
QUICK_ITEMS = 120
#: Annotators, and the share of labels that each gets right.
WORKERS = 20
SKILLS = (0.55, 0.95)
#: The methods: ours, ours without features, and the others, against the best of which ours is set.
OURS, VOTES_ALONE, MAJORITY, DAWID_SKENE = "untwist", "untwist, votes alone", "majority", "Dawid-Skene"
CLEANLAB = ("cleanlab on xgboost", "cleanlab on untwist", "cleanlab, ensemble")
RIVALS = (MAJORITY, DAWID_SKENE, *CLEANLAB)
#: Ours is level where it is not behind by more than this.
LEVEL = 0.005


@dataclass(frozen=True)
class AnnotatorsRow:
    """What one method makes of the votes.

    Attributes
    ----------
    tells, n_classes, labels_per_item, n_items, seed, method
        What was run.
    accuracy : float
        Of the truth that is found, over items.
    log_loss : float
        Of its probabilities, where the method gives any.
    quality_error : float
        How far off the share of wrong labels of an annotator is, in the mean.
    error : str
        What went wrong.
    """

    tells: str
    n_classes: int
    labels_per_item: int
    n_items: int
    seed: int
    method: str = ""
    accuracy: float = NAN
    log_loss: float = NAN
    quality_error: float = NAN
    error: str = ""

    @property
    def key(self) -> Job:
        """What was run."""
        return self.tells, self.n_classes, self.labels_per_item, self.n_items, self.seed, self.method


class Votes(NamedTuple):
    """Items with the votes on them, in long form: a row per vote."""

    X: Array
    truth: Labels
    item: Labels
    worker: Labels
    label: Labels


def draw_votes(job: Job) -> Votes:
    """Draw items, annotators and their votes; every item gets as many labels, by different annotators.

    Parameters
    ----------
    job : tuple
        The job.

    Returns
    -------
    Votes
    """
    tells, n_classes, labels_per_item, n_items = job[:4]
    rng = make_rng("annotators", *job)
    X, truth, _ = simulate(WORLDS[n_classes][tells], n_items, rng)
    skills = rng.uniform(*SKILLS, WORKERS)
    # How wrong labels are spread is each annotator's own.
    matrices = np.zeros((WORKERS, n_classes, n_classes))
    for skill, matrix in zip(skills, matrices, strict=True):
        for true in range(n_classes):
            matrix[true] = np.insert((1.0 - skill) * rng.dirichlet(np.ones(n_classes - 1)), true, skill)
    item = np.repeat(np.arange(n_items), labels_per_item)
    worker = np.argsort(rng.random((n_items, WORKERS)), axis=1)[:, :labels_per_item].ravel()
    label = flip(truth[item], matrices[worker], rng)
    return Votes(X, truth, item, worker, label)


class Answer(NamedTuple):
    """The truth by a method: labels of items, perhaps with probabilities, and the annotators' shares of wrong ones."""

    method: str
    found: Labels
    posterior: Array | None = None
    wrong_shares: Array | None = None


def list_jobs(quick: bool, folder: str | None) -> list[Job]:  # noqa: ARG001
    """List the samples, the largest first."""
    if quick:
        return [("much", 2, 3, QUICK_ITEMS, 0)]
    return [
        (tells, n_classes, labels_per_item, ITEMS, seed)
        for n_classes in (4, 2)
        for labels_per_item in reversed(LABELS_PER_ITEM)
        for seed in range(SEEDS)
        for tells in WORLDS[n_classes]
    ]


def judge(job: Job, folder: str | None) -> list[AnnotatorsRow]:  # noqa: ARG001
    """Let every method that is installed find the truth."""
    votes = draw_votes(job)
    wrong = votes.label != votes.truth[votes.item]
    shares = np.bincount(votes.worker, wrong, WORKERS) / np.maximum(np.bincount(votes.worker, minlength=WORKERS), 1)
    seen = np.unique(votes.worker)
    rows = []
    for answer in _answer(votes, job):
        log_loss = quality_error = NAN
        if answer.posterior is not None:
            p = answer.posterior[np.arange(len(votes.truth)), votes.truth]
            log_loss = float(-np.mean(np.log(np.maximum(p, 1e-6))))
        if answer.wrong_shares is not None:
            quality_error = float(np.mean(np.abs(answer.wrong_shares - shares[seen])))
        accuracy = float(np.mean(answer.found == votes.truth))
        row = replace(AnnotatorsRow(*job), method=answer.method, accuracy=accuracy)
        rows.append(replace(row, log_loss=log_loss, quality_error=quality_error))
    return rows


def _answer(votes: Votes, job: Job) -> Iterator[Answer]:
    """Yield the truth by ours, with features and without, by the majority, and by peers that are installed."""
    n_classes, seed = job[1], job[4]
    n_items = len(votes.truth)
    audit = audit_labels(
        votes.X[votes.item], votes.label, source=votes.worker, item=votes.item, n_jobs=1, random_state=seed
    )
    first = np.unique(votes.item, return_index=True)[1]
    posterior = np.asarray(audit.truth)[first]
    assert audit.context.by_source is not None
    yield Answer(OURS, posterior.argmax(axis=1), posterior, audit.context.by_source.shares)
    yield _answer_by_votes_alone(votes, n_classes)
    counts = np.zeros((n_items, n_classes))
    np.add.at(counts, (votes.item, votes.label), 1.0)
    # Ties are broken at random.
    majority = (counts + make_rng("ties", *job).random(counts.shape) / 2.0).argmax(axis=1).astype(np.int64)
    yield Answer(MAJORITY, majority)
    if find_version(("crowd-kit",)):
        yield _answer_dawid_skene(votes, n_classes)
    if find_version(("cleanlab",)):
        yield from _answer_cleanlab(votes, majority, seed)


def _answer_by_votes_alone(votes: Votes, n_classes: int) -> Answer:
    """Ours with features that tell nothing: every row has the shares of the labels for its posterior."""
    shares = np.bincount(votes.label, minlength=n_classes) / len(votes.label)
    posterior = np.tile(shares, (len(votes.label), 1))
    pooled = NoiseModel.estimate(posterior, votes.label)
    names, worker = np.unique(votes.worker, return_inverse=True)
    noise = estimate_by_source(posterior, votes.label, worker, names=names, noise=pooled, items=votes.item)
    truth = noise.find_truth(posterior, votes.label, worker, votes.item)
    return Answer(VOTES_ALONE, truth.argmax(axis=1), truth, noise.shares)


def _answer_dawid_skene(votes: Votes, n_classes: int) -> Answer:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    table = pd.DataFrame({"task": votes.item, "worker": votes.worker, "label": votes.label})
    model: Any = DawidSkene(n_iter=100)
    found = model.fit_predict(table).loc[np.arange(len(votes.truth))].to_numpy()
    posterior = model.probas_.reindex(columns=range(n_classes), fill_value=0.0).loc[np.arange(len(votes.truth))]
    right = posterior.to_numpy()[votes.item, votes.label]
    counts = np.bincount(votes.worker, minlength=WORKERS)
    wrong_shares = (np.bincount(votes.worker, 1.0 - right, WORKERS) / np.maximum(counts, 1))[counts > 0]
    return Answer(DAWID_SKENE, found, posterior.to_numpy(), wrong_shares)


def _answer_cleanlab(votes: Votes, majority: Labels, seed: int) -> Iterator[Answer]:
    import pandas as pd
    from cleanlab.multiannotator import get_label_quality_multiannotator, get_label_quality_multiannotator_ensemble

    table = np.full((len(votes.truth), WORKERS), np.nan)
    table[votes.item, votes.worker] = votes.label
    seen = np.unique(votes.worker)
    given = pd.DataFrame(table[:, seen], columns=seen)
    peer = PEERS["xgboost"]
    _, settings = search(peer, votes.X, majority, seed)
    by_peer = predict_unseen(peer, settings, votes.X, majority, seed)
    by_ours = UntwistClassifier(n_jobs=1, random_state=seed).fit(votes.X, majority).oof_proba_
    both = (np.asarray(by_peer), np.asarray(by_ours))
    quiet: dict[str, Any] = {"verbose": False}
    for method, found in [
        (CLEANLAB[0], get_label_quality_multiannotator(given, both[0], **quiet)),
        (CLEANLAB[1], get_label_quality_multiannotator(given, both[1], **quiet)),
        (CLEANLAB[2], get_label_quality_multiannotator_ensemble(given, np.stack(both), **quiet)),
    ]:
        quality = found["annotator_stats"]["annotator_quality"].loc[seen].to_numpy(dtype=float)
        labels = found["label_quality"]["consensus_label"].to_numpy().astype(np.int64)
        yield Answer(method, labels, wrong_shares=1.0 - quality)


def make_tables(rows: list[AnnotatorsRow]) -> list[TextTable]:
    """Make the tables: accuracy by what features tell, classes and labels, where ours is behind first; and the rest."""
    return [_tabulate_accuracy(rows), _tabulate_quality(rows)]


def _tabulate_accuracy(rows: list[AnnotatorsRow]) -> TextTable:
    cells: dict[Any, dict[str, dict[int, float]]] = {}
    for row in rows:
        cell = cells.setdefault((row.tells, row.n_classes, row.labels_per_item), {})
        cell.setdefault(row.method, {})[row.seed] = row.accuracy
    lines = []
    for (tells, n_classes, labels_per_item), by_method in cells.items():
        means = {method: float(np.mean(list(values.values()))) for method, values in by_method.items()}
        rivals = [method for method in RIVALS if method in means]
        if OURS not in means or not rivals:
            continue
        best = max(rivals, key=lambda method: means[method])
        ahead = np.array([by_method[OURS][seed] - by_method[best][seed] for seed in by_method[best]])
        spread = ahead.std(ddof=1) / math.sqrt(len(ahead)) if len(ahead) > 1 else NAN
        verdict = "ahead" if ahead.mean() > LEVEL else "level" if ahead.mean() >= -LEVEL else "BEHIND"
        numbers = [write_number(means.get(method, NAN)) for method in (OURS, VOTES_ALONE, *RIVALS)]
        name = f"{tells}, {n_classes} classes, {labels_per_item} labels"
        lines.append([name, *numbers, f"{ahead.mean():+.3f}", write_number(spread), verdict])
    lines.sort(key=lambda line: float(line[-3]))
    header = ["features tell", OURS, "votes alone", *RIVALS, "to the best", "s.e.", ""]
    note = (
        f"Share of items whose truth is found; {WORKERS} annotators are right in {SKILLS[0]:.0%} to {SKILLS[1]:.0%}. "
        "The last columns: ours against the best of the others."
    )
    return TextTable("annotators: accuracy of the truth", note, header, lines)


def _tabulate_quality(rows: list[AnnotatorsRow]) -> TextTable:
    lines = []
    for tells in dict.fromkeys(row.tells for row in rows):
        for method in (OURS, VOTES_ALONE, *RIVALS):
            here = [row for row in rows if (row.tells, row.method) == (tells, method)]
            if here:
                values = [[getattr(row, name) for row in here] for name in ("quality_error", "log_loss")]
                lines.append([f"{tells}, {method}", *(write_number(float(np.mean(one))) for one in values)])
    note = "The mean error of an annotator's share of wrong labels, and the log-loss of the truth."
    return TextTable("annotators: their quality", note, ["features tell, method", "error", "log-loss"], lines)


#: The part.
ANNOTATORS = Part(
    "annotators", "Several labels for one item: who finds the truth?", AnnotatorsRow, list_jobs, judge, make_tables
)
