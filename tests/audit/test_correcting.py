"""When labels of several classes are not replaced unless somebody has looked at them."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_friedman1

from helpers.small_audits import change, make_audit
from untwist.audit import audit_labels
from untwist.audit.correcting import lie_along_order
from untwist.audit.verdict import NoticeKind
from untwist.class_order import find_natural_order

pd = pytest.importorskip("pandas", reason="ordered categories are those of pandas")


def cut_into_levels(n_levels, moved=0.0, by=3, seed=0):
    """A number cut into levels, some labels moved by so many levels, and the true levels."""
    X, number = make_friedman1(3000, noise=1, random_state=seed)
    truth = np.digitize(number, np.quantile(number, np.arange(1, n_levels) / n_levels))
    is_moved = np.random.default_rng(seed).random(3000) < moved
    other = np.where(truth + by < n_levels, truth + by, truth - by)
    return X, np.where(is_moved, other, truth), truth


def audit_rows(X, y):
    return audit_labels(X, y, n_jobs=1)


# ---- small classes ----


def test_labels_of_small_separable_classes_stay():
    truth = np.repeat(np.arange(30), 10)
    rng = np.random.default_rng(0)
    X = np.column_stack([10 * truth + rng.normal(size=300), rng.normal(size=300)])
    audit = audit_rows(X, np.array([f"class {one:02d}" for one in truth]))
    with pytest.warns(UserWarning, match=r"no label is replaced: 30 of the 30 classes have under 50 rows"):
        labels = audit.corrected()
    np.testing.assert_array_equal(labels, audit.given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forced = audit.corrected(force=True)
    assert np.count_nonzero(forced != audit.given) > 10  # All of these labels were right.


def test_what_a_small_class_is():
    audit = make_audit(3, n=300)
    labels = np.repeat(np.arange(3), [50, 125, 125])
    audit = change(audit, given=audit.classes[labels])
    assert audit.verdict.why_not_corrected == ""
    one_less = labels.copy()
    one_less[0] = 2
    small = change(audit, given=audit.classes[one_less])
    assert small.verdict.why_not_corrected.startswith("a class has under 50 rows")
    # A row of weight 0 is an absent one.
    weight = np.ones(300)
    weight[0] = 0.0
    assert change(audit, weight=weight).verdict.why_not_corrected.startswith("a class has under 50 rows")


def test_two_classes_are_corrected_however_few_their_rows():
    audit = make_audit(2, n=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.count_nonzero(audit.corrected() != audit.given)


# ---- ordered classes ----


@pytest.mark.parametrize("moved", [0.0, 0.1])
@pytest.mark.parametrize("n_levels", [6, 8])
def test_of_levels_of_a_number_far_flips_alone_are_corrected(n_levels, moved):
    X, y, truth = cut_into_levels(n_levels, moved)
    audit = audit_rows(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = audit.corrected()
    assert np.count_nonzero(labels == truth) >= np.count_nonzero(y == truth)
    if not moved:
        assert not audit.noise.found
        np.testing.assert_array_equal(labels, y)
        # Nor are they by force, as no label is likely wrong.
        np.testing.assert_array_equal(audit.corrected(force=True), y)
    if not audit.noise.found:
        return
    (notice,) = audit.verdict.notes(NoticeKind.ORDER)
    assert "between neighbours in the order" in notice.sentence.python
    # What was found are far flips, and no neighbours were decided.
    order = audit.context.order
    assert not audit.noise.found_pairs[np.abs(np.subtract.outer(order, order)) == 1].all()
    forced = audit.corrected(force=True)
    assert np.count_nonzero((forced != y) & (y != truth)) > 5 * np.count_nonzero((forced != y) & (y == truth))


def test_an_order_is_no_matter_where_confusions_do_not_follow_it():
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    is_wrong = rng.random(len(truth)) < 0.15
    for wrong in ((truth + rng.integers(1, 10, len(truth))) % 10, (truth + 1) % 10):
        audit = audit_rows(X, np.where(is_wrong, wrong, truth))
        assert audit.context.order.tolist() == list(range(10))
        assert audit.verdict.why_not_corrected == ""
        assert np.mean(audit.corrected() == truth) > np.mean(audit.given == truth) + 0.1


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (np.array([3, 1, 2]), [0, 1, 2]),
        (np.array([0.5, -1.0, 2.0]), [0, 1, 2]),
        (np.array(["10", "9", "1"]), [0, 2, 1]),
        (np.array(["1 star", "2 stars", "10 stars"]), [0, 2, 1]),
        (np.array(["1a", "1b", "2"]), None),
        (np.array(["good", "bad", "fair"]), None),
        (np.array([0, 1]), None),
        (pd.Categorical(["good", "bad", "fair"], ["bad", "fair", "good"], ordered=True), [0, 1, 2]),
        (pd.Series(pd.Categorical(["lo", "hi", "mid"], ["lo", "mid", "hi", "top"], ordered=True)), [2, 0, 1]),
        (pd.Categorical(["lo", "hi", "mid"], ["lo", "mid", "hi"]), None),
    ],
)
def test_which_classes_have_an_order(labels, order):
    found = find_natural_order(labels, np.unique(np.asarray(labels)))
    assert (None if found is None else found.tolist()) == order


def test_the_order_of_categories_is_that_of_the_audit():
    X, y, _ = cut_into_levels(6)
    names = np.array(["awful", "bad", "fair", "good", "great", "ace"])
    labels = pd.Series(pd.Categorical(names[y], names, ordered=True))
    audit = audit_labels(X, labels, n_jobs=1)
    assert audit.classes[np.argsort(audit.context.order)].tolist() == names.tolist()
    by_posterior = audit_labels(X, labels, pred_probs=audit.posterior)
    assert by_posterior.context.order.tolist() == audit.context.order.tolist()
    assert audit_labels(X, np.asarray(labels), pred_probs=audit.posterior).context.order is None


def test_by_chance_neighbours_are_confused_too():
    alike = np.full((4, 4), 10.0) + 60 * np.eye(4)
    assert not lie_along_order(alike, np.arange(4))
    large = np.diag([5000.0, 5000, 10, 10])
    large[0, 1] = large[1, 0] = 900  # Nearly all rows are of these two, whatever their order.
    large[0, 2] = large[2, 0] = 3
    assert not lie_along_order(large, np.arange(4))
    along = np.eye(4) * 70 + np.eye(4, k=1) * 10 + np.eye(4, k=-1) * 10
    assert lie_along_order(along, np.arange(4))
    assert not lie_along_order(along, np.array([1, 3, 0, 2]))
    assert not lie_along_order(np.eye(4), np.arange(4))


# ---- what was reviewed ----


def test_labels_decided_on_are_changed_in_any_case():
    audit = make_audit(3, n=60)
    reviewed = np.zeros(60, dtype=bool)
    reviewed[:5] = True
    decided = (audit.label_indices[:5] + 1) % 3
    predicted = audit.predicted.copy()
    predicted[:5] = audit.classes[decided]
    wrong = audit.wrong.copy()
    wrong[:5] = 1.0
    audit = change(audit, reviewed=reviewed, predicted=predicted, wrong=wrong, before_review=audit.given)
    with pytest.warns(UserWarning, match="no label is replaced"):
        labels = audit.corrected()
    np.testing.assert_array_equal(labels[:5], predicted[:5])
    np.testing.assert_array_equal(labels[5:], audit.given[5:])
