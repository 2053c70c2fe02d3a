"""Targets that are no classes are refused in Python as on the command line; tables that teach nothing are warned of."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier

from untwist import PILBoostClassifier
from untwist.audit import audit_labels
from untwist.batches import Batches
from untwist.commands.main import main
from untwist.data.emptiness import describe_emptiness
from untwist.data.targets import doubt_classes

X, TARGET = load_diabetes(return_X_y=True)
LABELS = (TARGET > 140).astype(int)


def fit(X, y):
    return PILBoostClassifier(alpha=2, n_estimators=2, max_depth=2).fit(X, y)


@pytest.mark.parametrize(
    "y",
    [
        *(TARGET, TARGET.astype(int), TARGET.astype(np.uint8), pd.Series(TARGET), TARGET.astype(int).astype(object)),
        *(TARGET.astype("datetime64[D]"), TARGET.astype("timedelta64[D]")),
    ],
    ids=["floats", "ints", "small", "series", "objects", "dates", "lengths of time"],
)
def test_many_whole_numbers_are_no_classes(y):
    words = r"y holds 2\d\d different values in 442 rows: is it the label\? If these are classes, give them as text"
    for call in (fit, audit_labels, lambda X, y: audit_labels(X, y, RandomForestClassifier(5))):
        with pytest.raises(ValueError, match=words):
            call(X, y)


def test_text_and_categories_are_meant_as_classes():
    numbers = np.arange(120) // 2 + 1000
    rows = np.arange(120.0)[:, None]
    with pytest.raises(ValueError, match="y holds 60 different values in 120 rows"):
        fit(rows, numbers)
    for y in (numbers.astype(str), pd.Series(numbers).astype("category"), pd.Categorical(numbers)):
        assert len(fit(rows, y).classes_) == 60


def test_the_command_line_has_the_same_rule(tmp_path, capsys):
    table = tmp_path / "diabetes.csv"
    pd.DataFrame(X, columns=[f"c{one}" for one in range(10)]).assign(label=TARGET.astype(int)).to_csv(
        table, index=False
    )
    assert main(["train", str(table), "--label", "label", "-o", str(tmp_path / "model")]) == 1
    assert doubt_classes(np.unique(TARGET), len(TARGET)) in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:pred_probs")
def test_posteriors_of_as_many_classes_say_what_is_meant():
    y = np.arange(120) // 2
    posteriors = np.full((120, 60), 0.2 / 59)
    posteriors[np.arange(120), y] = 0.8
    for table in (None, np.arange(120.0)[:, None]):
        assert len(audit_labels(table, y, pred_probs=posteriors).classes) == 60


# ---- tables that teach nothing ----

CONSTANT = np.tile([3.0, np.nan], (442, 1))
SAME = "every column of X is the same in all rows, so that nothing but the shares"
MISSING = "all cells of X are missing, so that nothing but the shares"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (CONSTANT, SAME),
        (sparse.csr_array(np.tile([3.0, 0.0], (442, 1))), SAME),
        (pd.DataFrame({"a": ["x"] * 442}), SAME),
        (np.full((442, 2), np.nan), MISSING),
        (pd.DataFrame({"a": [None] * 442, "b": pd.array([None] * 442, dtype="string")}), MISSING),
    ],
    ids=["constant", "sparse", "text", "missing", "objects"],
)
def test_a_table_that_teaches_nothing_is_warned_of(table, words):
    with pytest.warns(UserWarning, match=words):
        fit(table, LABELS)


@pytest.mark.parametrize(("table", "words"), [(CONSTANT, SAME), (np.full((442, 2), np.nan), MISSING)])
def test_an_audit_of_a_table_that_teaches_nothing_warns(table, words):
    with pytest.warns(UserWarning, match=words):
        audit_labels(table, LABELS)


def test_a_table_that_differs_somewhere_is_not_warned_of():
    table = CONSTANT.copy()
    table[441, 0] = np.nan
    fit(table, LABELS)
    assert describe_emptiness([CONSTANT[:3], CONSTANT[:0], table]) is None
    assert describe_emptiness([np.zeros((0, 2))]) is None


def test_blocks_of_a_constant_table_are_warned_of(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": CONSTANT[:, 0]}).to_parquet(tmp_path / "x.parquet")
    with pytest.warns(UserWarning, match=SAME):
        fit(Batches(tmp_path / "x.parquet"), LABELS)


@pytest.mark.parametrize("command", ["train", "audit"])
def test_the_command_line_tells_of_a_constant_table(command, tmp_path, capsys):
    table = tmp_path / "constant.csv"
    pd.DataFrame({"a": CONSTANT[:, 0], "label": LABELS}).to_csv(table, index=False)
    output = ["-o", str(tmp_path / "model")] if command == "train" else []
    assert main([command, str(table), "--label", "label", *output]) == 0
    assert "every column is the same in all rows" in capsys.readouterr().err
