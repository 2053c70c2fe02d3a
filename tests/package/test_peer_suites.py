"""How the tests of other libraries are run against PILBoostClassifier; `make test-peers` runs them."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from helpers.small_fits import draw_sample
from reliability.peers import __main__ as peers
from reliability.peers import plugin, stand_ins


def test_every_difference_has_a_kind_a_reason_and_a_test_of_its_own():
    rows = plugin.read_differences()
    assert {row["kind"] for row in rows} <= {plugin.NOT_APPLICABLE, plugin.DIFFERENT, plugin.MISSING}
    for row in rows:
        assert set(row) == {"kind", "reason", "tests"}
        assert row["reason"].endswith(".")
    patterns = [pattern for row in rows for pattern in row["tests"]]
    assert len(patterns) == len(set(patterns))
    modules = {name.removeprefix("sklearn.") for name in plugin.SUITES}
    assert {pattern.partition("::")[0] for pattern in patterns if "::" in pattern} <= modules


def test_a_star_stands_for_any_letters_and_brackets_for_themselves():
    assert plugin.matches("a.b::test_x[1-True]", "a.b::test_x[*")
    assert plugin.matches("a.b::test_x[1-True]", "*True*")
    assert not plugin.matches("a.b::test_x_y", "a.b::test_x")
    assert not plugin.matches("a.b::test_x1", "a.b::test_x[1]")


def test_tests_of_others_are_counted_by_how_they_end():
    def report(outcome, fits=1, reason="", **more):
        fields = {"skipped": outcome == "skipped", "failed": outcome == "failed", "longrepr": reason}
        return SimpleNamespace(**fields, user_properties=[("fits", fits)], **more)

    assert peers.judge(report("passed")) == peers.PASSED
    assert peers.judge(report("passed", fits=0)) == peers.NEVER_FITTED
    assert peers.judge(report("failed")) == "failed"
    assert (
        peers.judge(report("skipped", reason="Skipped: does not apply: It is for regressors.")) == plugin.NOT_APPLICABLE
    )
    assert peers.judge(report("skipped", wasxfail="different: Other words.")) == plugin.DIFFERENT
    assert peers.judge(report("skipped", reason="Skipped: no pandas")) == peers.NOT_INSTALLED


@pytest.mark.parametrize("made", stand_ins.STAND_INS.values(), ids=lambda made: made.__name__)
def test_a_stand_in_has_the_constructor_of_its_peer_and_boosts(made):
    X, y = draw_sample(60)
    model = made(**({"n_estimators": 3} if "n_estimators" in made().get_params() else {}))
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "classes_")
    before = stand_ins.Fits.count
    model.fit(X, y)
    assert stand_ins.Fits.count == before + 1
    assert model.boosting_.alpha_ == 1.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.boosting_.predict(X))
    assert clone(model).get_params() == model.get_params()
