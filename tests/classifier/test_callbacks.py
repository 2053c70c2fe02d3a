"""Callbacks and reports: who is told of which round, and who can end a fit."""

import itertools
import math
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from helpers.small_fits import any_engine, draw_sample, make_model


@any_engine
@pytest.mark.parametrize("classes", [2, 3])
def test_callbacks_are_told_of_every_round(settings, classes):
    X, y = draw_sample(classes=classes)
    X_val, y_val = draw_sample(50, classes=classes, seed=1)
    seen, others = [], []
    fitted = make_model(7, callbacks=[seen.append, others.append], **settings).fit(X, y, X_val=X_val, y_val=y_val)
    assert [one.round for one in seen] == list(range(1, 8))
    assert others == seen
    assert {one.n_rounds for one in seen} == {7}
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    results = fitted.evals_result_["validation"]
    for name, values in (("validation_loss", results["log_loss"]), ("validation_error", results["error"])):
        mean = values if classes == 2 else np.mean(values, axis=0)
        np.testing.assert_allclose([getattr(one, name) for one in seen], mean, rtol=1e-12)
    mean = fitted.edges_ if classes == 2 else np.mean(fitted.edges_, axis=0)
    np.testing.assert_allclose([one.edge for one in seen], mean, rtol=1e-12)
    silent = make_model(7, **settings).fit(X, y)
    np.testing.assert_array_equal(silent.decision_function(X), fitted.decision_function(X))
    lonely = []
    make_model(2, callbacks=(lonely.append,), **settings).fit(X, y)
    assert all(math.isnan(one.validation_loss) and math.isnan(one.validation_error) for one in lonely)


@any_engine
def test_no_round_is_told_twice_when_a_fit_ends_early(settings):
    X, y = draw_sample(noise=0.3)
    seen = []
    fitted = make_model(300, early_stopping=3, callbacks=[seen.append], **settings).fit(X, y)
    rounds = len(fitted.evals_result_["validation"]["log_loss"])
    assert rounds == fitted.n_iter_ + 3
    assert [one.round for one in seen] == list(range(1, rounds + 1))


def test_no_round_is_told_twice_when_all_rows_are_beyond_the_clip(capsys):
    X, y = np.repeat([[0.0], [1.0]], 5, axis=0), np.repeat([0, 1], 5)
    seen = []
    fitted = make_model(50, step_size=4.0, callbacks=[seen.append], verbose=1).fit(X, y)
    assert fitted.n_iter_ == 1
    assert [one.round for one in seen] == [1]
    assert capsys.readouterr().err.count("round") == 1


@any_engine
@pytest.mark.parametrize("classes", [2, 3])
def test_a_callback_can_end_a_fit(settings, classes):
    X, y = draw_sample(classes=classes)
    calls = []
    fitted = make_model(50, callbacks=[lambda p: p.round == 4, lambda p: calls.append(p.round)], **settings).fit(X, y)
    assert fitted.n_iter_ == 4
    assert calls == [1, 2, 3, 4]  # The other callbacks are told of the last round too.
    np.testing.assert_array_equal(fitted.decision_function(X), make_model(4, **settings).fit(X, y).decision_function(X))


def test_what_a_callback_raises_goes_on_to_the_caller():
    def fail(progress):
        raise ZeroDivisionError("mine")

    X, y = draw_sample()
    fitted = make_model(callbacks=[fail])
    with pytest.raises(ZeroDivisionError, match="mine"):
        fitted.fit(X, y)
    with pytest.raises(NotFittedError):
        fitted.predict(X)


def test_reports_tell_the_round_and_the_time_left(capsys):
    X, y = draw_sample()
    make_model(9, verbose=3).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    for line, done in zip(lines, (3, 6, 9), strict=True):
        assert re.fullmatch(rf"round {done} of 9: edge -?0\.\d{{4}}, \d+ s left", line)
    make_model(5, verbose=True, engine="reference").fit(X, y, X_val=X, y_val=y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == list("12345")
    assert all(re.search(r"validation log-loss \d\.\d{4}, \d+ s left$", line) for line in lines)
    make_model(5, verbose=7).fit(X, y)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""
