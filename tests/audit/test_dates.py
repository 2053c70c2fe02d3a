"""Dates are shown as dates wherever a person reads of them."""

import re

import numpy as np
import pytest

from untwist import PILBoostClassifier, UntwistClassifier
from untwist.audit import audit_labels
from untwist.audit.hidden_sources import describe_groups, group_values
from untwist.audit.slices import split_column
from untwist.data.cells import EPOCH
from untwist.explain import explain
from untwist.export import to_code
from untwist.report import report

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("few_components")
DATE = r"20\d\d-\d\d-\d\d"


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(0)
    n = 500
    signup = pd.Timestamp("2016-01-01") + pd.to_timedelta(rng.integers(0, 2500, n), "D")
    X = pd.DataFrame({"signup": signup, "x": rng.normal(size=n)})
    y = (signup > "2019-06-01") ^ (rng.random(n) < 0.1)
    model = UntwistClassifier(random_state=0).fit(X, y)
    return X, audit_labels(X, y, model), model


def test_reasons_tell_dates_that_occur(audited):
    X, audit, _ = audited
    days = set(X["signup"].dt.strftime("%Y-%m-%d"))
    found = [str(audit.explain(row)) for row in audit.suspects(budget=10).tolist()]
    dates = re.findall(rf"signup is ({DATE}), usually ({DATE}) ", "\n".join(found))
    assert len(dates) > 5
    assert {one for pair in dates for one in pair} <= days
    assert re.search(rf"signup.*{DATE}", report(audit, title="t", suspects=audit.suspects(budget=10)))


def test_slices_and_sources_tell_dates(audited):
    X, _, model = audited
    encoder = model.model_.encoder
    numbers = encoder.encode_dense(X)[:, 0]
    assert numbers[0] == (X["signup"][0] - EPOCH).days
    for words, _ in split_column(encoder, 0, numbers):
        assert re.fullmatch(rf"(above {DATE}( [\d:]+)?)?( and )?(at most {DATE}( [\d:]+)?)?", words), words
    _, names, upper = group_values(encoder, 0, numbers)
    assert all(re.search(DATE, name) for name in names)
    chosen = np.arange(len(upper)) < 3
    assert re.fullmatch(f"is at most {DATE}", describe_groups(encoder, 0, numbers, chosen))


def test_explanations_and_exports_tell_dates(audited):
    X, _, model = audited
    shown = explain(model, X.head(3)).shown[:, 0]
    assert [str(one) for one in shown] == X["signup"].head(3).dt.strftime("%Y-%m-%d").tolist()
    assert "a date as days since 1970-01-01" in to_code(model, "python")


def test_a_model_with_dates_goes_on_from_where_it_was(audited):
    X, audit, _ = audited
    model = PILBoostClassifier(alpha=1.0, n_estimators=3, max_depth=2, random_state=0, warm_start=True).fit(
        X, audit.given
    )
    model.set_params(n_estimators=5).fit(X, audit.given)
    whole = PILBoostClassifier(alpha=1.0, n_estimators=5, max_depth=2, random_state=0).fit(X, audit.given)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))


def test_words_for_missing_values_stand_among_numbers_held_as_text():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200).round(2)
    table = pd.DataFrame({"b": rng.normal(size=200), "a": np.where(np.arange(200) % 50 == 0, "-", a.astype(str))})
    with pytest.warns(UserWarning, match="holds numbers as text"):
        model = PILBoostClassifier(alpha=1.0, n_estimators=5, max_depth=2).fit(table, a > 0)
    plain = table.assign(a=np.where(np.arange(200) % 50 == 0, np.nan, a))
    twin = PILBoostClassifier(alpha=1.0, n_estimators=5, max_depth=2).fit(plain, a > 0)
    np.testing.assert_array_equal(model.predict_proba(table), twin.predict_proba(plain))
