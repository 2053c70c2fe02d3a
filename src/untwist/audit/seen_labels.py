"""Posteriors that are too good to be of a model that has not seen the labels.

Such posteriors agree with wrong labels as well as with right ones, so that an audit by them finds nothing. Where the
rows are known, a quick model of ours that has not seen them is the measure: noise that nobody can predict is predicted
by whoever has seen it. Without rows there are but two clear signs: posteriors that are contradicted far less often than
they themselves expect, as those of boosted trees and forests are that judge their training rows, and ones that are
certain of every single label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.utils import _safe_indexing

from untwist.arguments import Array
from untwist.automatic.search import Search
from untwist.blas import use_one_blas_thread
from untwist.classifier import UntwistClassifier
from untwist.data.targets import know_rows
from untwist.settings import resolve_recipe
from untwist.training_data import TrainingData

__all__ = ["compare_with_quick_model", "find_sign_of_seen_labels"]

# ---- beside a model of ours ----

#: The alpha and the depth of the trees of the quick model: two candidates of the recipe in the middle.
QUICK_ALPHA = 2.0
QUICK_DEPTH = 4

#: The quick model learns from this many rows, at most.
MOST_ROWS = 20_000
#: Posteriors that miss less than this part of the labels that the quick model misses are too good. On the tables that
#: this was chosen on, those of models that had not seen the rows missed 0.74 times as many at least wherever that was
#: more than a few rows, and those of boosted trees and forests that had seen noisy ones at most 0.4 times, mostly none;
#: CatBoost, which learns little by heart, 0.8 times at most.
MOST_OF_OURS = 0.6
#: Where fewer labels than this share make the difference, the data are easy and somebody may be as good.
LEAST_DIFFERENCE = 0.03
#: The difference must be less likely than this by chance.
CHANCE = 1e-4

# ---- without rows ----

#: Posteriors must expect this share of labels to contradict them, and this number, before their absence is a sign.
LEAST_EXPECTED_SHARE = 0.01
LEAST_EXPECTED = 5.0
#: At most this part of the expected contradictions are there. Forests that are shy have 0.17 of them on easy data.
MOST_OF_EXPECTED = 0.08
#: Posteriors are certain whose doubt is less than this on average, and so many labels are no accident.
NO_DOUBT = 1e-6
ENOUGH_LABELS = 100


def compare_with_quick_model(
    posterior: Array,
    X: Any,
    labels: NDArray[np.intp],
    weight: Array,
    *,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> str:
    """Tell whether posteriors agree with labels more than any model does that has not seen them.

    A small model of ours judges the rows out of fold, a sample of them where they are many. As it learns from
    fewer rows then, others may err less by the square root of the share that it saw.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        The posteriors.
    X : table
        The rows.
    labels, weight : arrays
        The index of each row's label, and what it weighs; rows of weight 0 do not count.
    n_jobs, random_state
        Those of the quick model.

    Returns
    -------
    str
        The reason to think that the labels were seen; empty where there is none.
    """
    counted = np.flatnonzero(weight > 0)
    errs = posterior.argmax(axis=1) != labels
    rows = counted
    if len(counted) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(counted, MOST_ROWS, replace=False))
    parameters = UntwistClassifier(n_jobs=n_jobs, random_state=random_state).get_params()
    quick = resolve_recipe(parameters).shrink_to(alpha=QUICK_ALPHA, depth=QUICK_DEPTH)
    with know_rows():
        data = TrainingData.collect(quick, _safe_indexing(X, rows), labels[rows], weight[rows])
    with use_one_blas_thread():
        fit = Search(data).run()
    if fit.interrupt is not None:
        raise fit.interrupt
    ours = fit.model.out_of_fold_posterior()
    assert ours is not None  # Folds have judged all rows.
    ours_errs = fit.model.classes[ours.argmax(axis=1)] != labels[rows]
    theirs_errs = errs[rows]
    theirs, our_share = float(theirs_errs.mean()), float(ours_errs.mean())
    most = MOST_OF_OURS * float(np.sqrt(len(rows) / len(counted)))
    if theirs > most * our_share or our_share - theirs < LEAST_DIFFERENCE:
        return ""
    only_theirs, only_ours = (
        int(np.count_nonzero(one & ~other)) for one, other in ((theirs_errs, ours_errs), (ours_errs, theirs_errs))
    )
    if binom.cdf(only_theirs, only_theirs + only_ours, 0.5) > CHANCE:
        return ""
    return (
        f"they contradict {theirs:.1%} of the labels, and a model of ours that has not seen these rows "
        f"{our_share:.1%}: either the labels were seen, or the posteriors know more than the columns of X say"
    )


def find_sign_of_seen_labels(posterior: Array, labels: NDArray[np.intp], weight: Array) -> str:
    """Tell, without rows, whether posteriors show a clear sign that they have seen their labels.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        The posteriors, as they were given.
    labels, weight : arrays
        The index of each row's label, and what it weighs; rows of weight 0 do not count.

    Returns
    -------
    str
        The reason to think so; empty where there is none, which does not mean that the labels were not seen.

    Examples
    --------
    >>> labels = np.arange(1000) % 2
    >>> find_sign_of_seen_labels(np.where(np.eye(2)[labels] == 1, 0.9, 0.1), labels, np.ones(1000))
    'they contradict 0 of 1,000 labels, and would be contradicted by 100 if they meant what they say'
    >>> find_sign_of_seen_labels(np.where(np.eye(2)[labels] == 1, 0.9999, 0.0001), labels, np.ones(1000))
    ''
    """
    counted = np.flatnonzero(weight > 0)
    n_rows = len(counted)
    likeliest = posterior[counted].max(axis=1)
    contradicted = int(np.count_nonzero(posterior[counted].argmax(axis=1) != labels[counted]))
    expected = float((1.0 - likeliest).sum())
    if expected <= NO_DOUBT * n_rows and contradicted == 0 and n_rows >= ENOUGH_LABELS:
        return f"they are certain of every one of the {n_rows:,} labels"
    is_telling = expected >= max(LEAST_EXPECTED, LEAST_EXPECTED_SHARE * n_rows)
    if not is_telling or contradicted > MOST_OF_EXPECTED * expected:
        return ""
    return (
        f"they contradict {contradicted:,} of {n_rows:,} labels, and would be contradicted by {expected:,.0f} if they "
        "meant what they say"
    )
