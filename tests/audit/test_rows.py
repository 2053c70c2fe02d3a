"""The rows of an audit that are no table: read like those of a table, and set aside together where they belong so."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, TimeSeriesSplit

from untwist.any_model import rows as room
from untwist.batches import Batches
from untwist.fit_arguments import SourceColumns
from untwist.out_of_fold import RowContext
from untwist.settings import RECIPE_DEFAULTS, resolve_recipe

TEXTS = [f"text {one // 2}" for one in range(40)]  # Every text is there twice.
LABELS = np.array(["no", "yes"])[np.arange(40) // 2 % 2]
NOTHING = SourceColumns(None, None, None)


def read_rows(X, y, weight, sources, seed, cv=None, reviewed=None):
    """Read rows by a seed and folds alone."""
    settings = resolve_recipe({**RECIPE_DEFAULTS, "cv": cv, "random_state": seed})
    return room.read_rows(settings, X, y, weight, sources, reviewed)


def list_folds(rows):
    """By row the folds that set it aside."""
    return [np.flatnonzero(column).tolist() for column in rows.folds.T]


def assert_together(rows, names):
    """Rows of one name are set aside by the same fold, as a whole, and every fold sets some aside."""
    folds = list_folds(rows)
    assert all(len(one) == 1 for one in folds)
    by_name = {}
    for name, (fold,) in zip(names, folds, strict=True):
        by_name.setdefault(name, set()).add(fold)
    assert all(len(one) == 1 for one in by_name.values())
    assert set().union(*by_name.values()) == set(range(len(rows.folds)))
    np.testing.assert_allclose(rows.folds.sum(axis=0), rows.weight)


def test_texts_are_read_with_their_labels_and_weights():
    rows = read_rows(TEXTS, LABELS, 2.0 + np.arange(40) % 2, NOTHING, 0, 4)
    assert rows.classes.tolist() == ["no", "yes"]
    assert rows.labels.tolist() == (np.arange(40) // 2 % 2).tolist()
    np.testing.assert_allclose(rows.weight / rows.weight[0], (2.0 + np.arange(40) % 2) / 2.0)
    assert rows.encoder is None
    assert vars(rows.context) | {"fingerprint": None} == vars(RowContext())
    other = read_rows([*TEXTS[:-1], "another"], LABELS, None, NOTHING, 0, 4)
    assert None not in (rows.context.fingerprint, other.context.fingerprint)
    assert rows.context.fingerprint != other.context.fingerprint
    assert len(rows.folds) == 4
    assert_together(read_rows(TEXTS, LABELS, None, NOTHING, 0, 4), TEXTS)
    first, other = (list_folds(read_rows(TEXTS, LABELS, None, NOTHING, seed, 4)) for seed in (0, 1))
    assert first != other
    images = np.arange(40).repeat(4).reshape(40, 2, 2) // 8
    assert_together(read_rows(images, LABELS, None, NOTHING, 0, 4), images[:, 0, 0].tolist())


def test_without_rows_there_are_no_folds():
    rows = read_rows(None, LABELS, None, NOTHING, 0)
    assert rows.folds is None
    assert rows.labels.tolist() == (np.arange(40) // 2 % 2).tolist()
    assert rows.weight.tolist() == [1.0] * 40


def test_a_table_is_read_as_for_a_fit():
    rows = read_rows(np.arange(80.0).reshape(40, 2), LABELS, None, SourceColumns(np.arange(40) % 3, None, None), 0, 4)
    assert rows.encoder.n_features == 2
    assert rows.context.sources.names.tolist() == [0, 1, 2]
    assert rows.folds.shape == (4, 40)


def test_groups_and_items_are_set_aside_together():
    groups = np.arange(40) % 10
    rows = read_rows(TEXTS, np.arange(40) // 10 % 2, None, SourceColumns(None, None, groups), 0, 4)
    assert rows.context.groups.name_rows().tolist() == groups.tolist()
    assert_together(rows, groups.tolist())
    items = [f"item {one % 20}" for one in range(40)]
    told = SourceColumns(np.arange(40) // 20, items, None)
    alone = [f"text {one}" for one in range(40)]
    rows = read_rows(alone, np.arange(40) % 20 % 2, None, told, 0, 4)
    assert_together(rows, items)
    assert rows.context.sources.n_items == 20
    repeated = read_rows(TEXTS, LABELS, None, SourceColumns(np.arange(40) % 2, None, None), 0, 4)
    assert repeated.context.sources.items[::2].tolist() == repeated.context.sources.items[1::2].tolist()
    both = SourceColumns(np.arange(40) // 20, items, np.arange(40) % 20 // 2)
    assert_together(read_rows(alone, np.arange(40) % 20 % 2, None, both, 0, 4), (np.arange(40) % 20 // 2).tolist())


def test_folds_of_ones_own_judge_what_they_set_aside():
    rows = read_rows(TEXTS, LABELS, np.arange(40) % 2 + 1.0, NOTHING, 0, TimeSeriesSplit(3))
    assert rows.context.own_folds.judged.tolist() == [False] * 10 + [True] * 30
    np.testing.assert_allclose(rows.folds, np.where(rows.context.own_folds.held_out, rows.weight, 0.0))
    whole = read_rows(TEXTS, LABELS, None, NOTHING, 0, KFold(4))
    assert whole.context.own_folds.judged.all()
    for told, reviewed, name in (
        (SourceColumns(np.arange(40) % 2, None, None), None, "source"),
        (NOTHING, [0, 5], "reviewed"),
    ):
        with pytest.raises(ValueError, match=name):
            read_rows(TEXTS, LABELS, None, told, 0, TimeSeriesSplit(3), reviewed)


@pytest.mark.parametrize("X", [TEXTS, np.arange(80.0).reshape(40, 2)], ids=["texts", "table"])
def test_what_a_person_found_is_kept_where_it_decides_on_something(X):
    rows = read_rows(X, LABELS, None, NOTHING, 0, 4, [3, 7])
    assert np.flatnonzero(rows.context.reviewed.is_reviewed).tolist() == [3, 7]
    assert rows.context.reviewed.labels.tolist() == rows.labels.tolist()
    assert read_rows(X, LABELS, None, NOTHING, 0, 4, np.zeros(40, dtype=bool)).context.reviewed is None
    with pytest.raises(ValueError, match="reviewed and source exclude each other"):
        read_rows(X, LABELS, None, SourceColumns(np.arange(40) % 2, None, None), 0, 4, [3, 7])


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (SourceColumns([None] * 40, None, None), "source must be known for some of the rows with a weight"),
        (SourceColumns(["a"] * 39, None, None), "source must be one name per row"),
    ],
)
def test_sources_that_say_nothing_are_refused(told, message):
    with pytest.raises(ValueError, match=message):
        read_rows(TEXTS, LABELS, None, told, 0)


def test_rows_that_cannot_be_read_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight must be positive for some|at least one non-zero"):
        read_rows(TEXTS, LABELS, np.zeros(40), NOTHING, 0)
    with pytest.raises(ValueError, match="X and y must have as many rows, got 39 and 40"):
        read_rows(np.zeros((39, 2, 2)), LABELS, None, NOTHING, 0)
    with pytest.raises(ValueError, match="must be in memory to be judged by posteriors of other models"):
        read_rows(object.__new__(Batches), LABELS, None, NOTHING, 0)
    only_absent = SourceColumns(["a"] + [None] * 39, None, None)
    with pytest.raises(ValueError, match="source must be known for some of the rows with a weight"):
        read_rows(TEXTS, LABELS, np.r_[0.0, np.ones(39)], only_absent, 0)
    with pytest.raises(ValueError, match="missing"):
        read_rows(TEXTS, [None, *LABELS[1:]], None, NOTHING, 0)
