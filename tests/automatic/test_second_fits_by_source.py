"""The second fit by what labels of a source are worth, with searches that are written down."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from untwist.automatic import sources as by_source
from untwist.automatic.sources import fit_by_source
from untwist.fitting import Fit
from untwist.model import Choice


@dataclass(frozen=True)
class Parts:
    """Fields of a model, of its data or of its settings, as far as a second fit changes them."""

    name: str = ""
    weight: Any = None
    folds: Any = None
    rows: Any = None
    settings: Any = None
    sources: Any = None
    workers: Any = None
    choice: Any = None
    noise: Any = None
    posterior: Any = None
    out_of_fold: Any = None
    callbacks: Any = None
    verbose: int = 0
    classes: Any = ()

    def narrow_to(self, best):
        return Parts(name=f"narrowed to {best}")

    def judge_anew(self, other):
        return replace(self, posterior=other.posterior)


WORTH = np.array([0.5, 1.0, 2.0])


def make_model(name, weight):
    choice = Choice(f"best of {name}", (f"tried by {name}",), f"mixture of {name}")
    return Parts(
        name,
        choice=choice,
        out_of_fold=Parts(weight=weight, posterior=f"posterior of {name}"),
        sources="noise by source",
    )


def run(monkeypatch, first, second, differ=True, verbose=0):
    """Return the fit, the searches that were made, and what sources were judged by."""
    made, judged, fits = [], [], [first, second]

    def search(data):
        fit, stopped = fits[len(made)]
        made.append(
            SimpleNamespace(data=data, settings=data.settings, stopped=stopped, run=lambda: fit, started_at=len(made))
        )
        return made[-1]

    def judge(model, data, reliability=None):
        judged.append((model.name, reliability))
        return model

    monkeypatch.setattr(by_source, "Search", search)
    monkeypatch.setattr(by_source, "judge_sources", judge)
    monkeypatch.setattr(
        by_source, "estimate_noise_of", lambda unseen, *_: f"noise by {unseen.weight}, {unseen.posterior}"
    )
    monkeypatch.setattr(by_source, "differ_much", lambda noise: differ)
    monkeypatch.setattr(by_source, "weigh_by_reliability", lambda noise, sources: WORTH)
    ones = np.ones(3)
    data = Parts("data", 3 * ones, np.array([[1.0, 2.0, 3.0]]), Parts(weight=5 * ones), sources="sources")
    return fit_by_source(replace(data, settings=Parts(callbacks="callbacks", verbose=verbose))), made, judged


FIRST = make_model("first", weight="as before")
SECOND = make_model("second", weight="as weighed")


def test_every_weight_is_multiplied_by_what_the_label_is_worth(monkeypatch):
    fit, (_, again), judged = run(monkeypatch, (Fit(FIRST), False), (Fit(SECOND), False))
    np.testing.assert_array_equal(again.data.weight, 3 * WORTH)
    np.testing.assert_array_equal(again.data.rows.weight, 5 * WORTH)
    np.testing.assert_array_equal(again.data.folds, [[0.5, 2.0, 6.0]])
    assert again.settings == Parts("narrowed to best of first", callbacks="callbacks")
    assert again.started_at == 0
    assert judged == [("first", None), ("second", WORTH)]
    assert (fit.model.name, fit.model.noise, fit.interrupt) == (
        "second",
        "noise by as weighed, posterior of second",
        None,
    )
    assert fit.model.choice == Choice("best of first", ("tried by first",), "mixture of second")
    assert fit.model.out_of_fold == Parts(weight="as before", posterior="posterior of second")


@pytest.mark.parametrize(("first", "differ"), [((Fit(FIRST), False), False), ((Fit(FIRST), True), True)])
def test_sources_that_are_alike_and_searches_that_were_ended_call_for_no_second_fit(monkeypatch, first, differ):
    fit, made, judged = run(monkeypatch, first, None, differ)
    assert (fit.model, fit.interrupt, len(made), judged) == (FIRST, None, 1, [("first", None)])


def test_what_ends_the_second_fit_leaves_the_first(monkeypatch, capsys):
    heard = KeyboardInterrupt()
    fit, *_ = run(monkeypatch, (Fit(FIRST), False), (Fit(SECOND), True))
    assert (fit.model, fit.interrupt) == (FIRST, None)
    assert capsys.readouterr().err == ""
    fit, *_ = run(monkeypatch, (Fit(FIRST), False), (Fit(SECOND, heard), True), verbose=1)
    assert (fit.model, fit.interrupt) == (FIRST, heard)
    assert "once more" in "".join(capsys.readouterr())
    fit, made, _ = run(monkeypatch, (Fit(FIRST, heard), True), None)
    assert (fit.interrupt, len(made)) == (heard, 1)
