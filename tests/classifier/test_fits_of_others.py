"""A model that one thread fits again while others ask it: they get the answers of one fit, whole."""

import threading

import numpy as np
import pytest

from helpers.patience import PATIENCE
from helpers.small_fits import draw_sample, make_model
from untwist import PILBoostClassifier, pilboost, predicting
from untwist.explain import explain
from untwist.files import dumps

X, Y = draw_sample()

# Everything that a fitted classifier is asked for rows, or by its name.
QUESTIONS = {
    "predict": lambda model: model.predict(X),
    "predict_proba": lambda model: model.predict_proba(X),
    "predict_log_proba": lambda model: model.predict_log_proba(X),
    "predict_proba_twisted": lambda model: model.predict_proba_twisted(X),
    "decision_function": lambda model: model.decision_function(X),
    "staged_decision_function": lambda model: list(model.staged_decision_function(X)),
    "staged_predict": lambda model: list(model.staged_predict(X)),
    "staged_predict_proba": lambda model: list(model.staged_predict_proba(X)),
    "alpha_star": lambda model: model.alpha_star(X),
    "apply": lambda model: model.apply(X),
    "margins": lambda model: model.margins(X, Y),
    "weights": lambda model: model.weights(X, Y),
    "score": lambda model: model.score(X, Y),
    "importances": lambda model: model.importances("gain"),
}


def test_threads_predict_by_the_last_fit_while_another_one_fits():
    began, may_go_on = threading.Event(), threading.Event()

    def wait(progress):
        began.set()
        assert may_go_on.wait(PATIENCE)

    model = make_model().fit(X, Y)
    expected = model.predict_proba(X)
    others, labels = draw_sample(classes=3, seed=1)
    model.set_params(callbacks=[wait])
    fit = threading.Thread(target=model.fit, args=(others[:, :3], labels))
    fit.start()
    try:
        assert began.wait(PATIENCE)
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        assert model.classes_.tolist() == [0, 1]
        assert model.n_features_in_ == 4
    finally:
        may_go_on.set()
        fit.join(PATIENCE)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 3
    assert model.predict_proba(others[:, :3]).shape == (len(others), 3)


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_that_of_one_fit(name, monkeypatch):
    """A question that looks for the model twice would mix two fits where another thread ends one in between."""
    ask = QUESTIONS[name]
    model = make_model(max_depth=2).fit(X, Y)
    expected = ask(model)
    others, labels = draw_sample(classes=3, seed=1)
    found = [model.model_, make_model().fit(others[:, :3], labels).model_]
    for module in (pilboost, predicting):
        monkeypatch.setattr(module, "find_model", lambda _: found.pop(0) if len(found) > 1 else found[0])
    for one, other in zip(np.atleast_1d(ask(model)), np.atleast_1d(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("ask", [lambda model: explain(model, X).values, dumps], ids=["explain", "dumps"])
def test_other_rooms_take_the_model_of_one_fit(ask):
    model = make_model().fit(X, Y)
    expected = ask(model)

    class Changing(PILBoostClassifier):
        """A classifier that another thread has fitted again whenever its model is looked for a second time."""

        @property
        def model_(self):
            return found.pop(0) if len(found) > 1 else found[0]

    others, labels = draw_sample(classes=3, seed=1)
    other = make_model().fit(others[:, :3], labels).model_
    changing = Changing(**model.get_params())
    # Both rooms ask whether there is a model before they take it.
    found = [model.model_, model.model_, other]
    np.testing.assert_array_equal(ask(changing), expected)


@pytest.mark.parametrize("failure", ["rows", "callback", "interrupt"])
@pytest.mark.parametrize("warm_start", [False, True])
def test_a_fit_that_fails_leaves_the_model_before_it(failure, warm_start):
    def fail(progress):
        raise {"callback": ZeroDivisionError, "interrupt": KeyboardInterrupt}[failure]

    model = make_model().fit(X, Y)
    before, expected = model.model_, model.predict_proba(X)
    model.set_params(n_estimators=9, warm_start=warm_start, callbacks=None if failure == "rows" else [fail])
    rows = X.copy()
    if failure == "rows":
        rows[3, 2] = np.inf
    with pytest.raises((ValueError, ZeroDivisionError, KeyboardInterrupt)):
        model.fit(rows, Y)
    if failure == "interrupt":  # The rounds so far are a model of their own.
        assert model.n_iter_ == (7 if warm_start else 1)
        return
    assert model.model_ is before
    np.testing.assert_array_equal(model.predict_proba(X), expected)
