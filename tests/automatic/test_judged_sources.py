"""What sources are judged by: the rows that have a weight, with what models that have not seen them say."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.unseen import make_unseen
from untwist.automatic import sources as by_source
from untwist.automatic.sources import differ_much, judge_sources, weigh_by_reliability
from untwist.data.sources import LabelSources
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.two_classes import TwoClassNoise

SOURCES = LabelSources(np.array(["a", "b"]), np.array([1, 0, 1, -1, 0]), np.array([7, 3, 7, 9, 4]))


@dataclass(frozen=True)
class Model:
    """What a model has told of rows that it has not seen."""

    noise: Any
    out_of_fold: Any
    untwists: bool = False
    sources: Any = None


def judge(monkeypatch, *, reliability=None, kind=TwoClassNoise, fingerprint=5):
    """Return the model before and after, and what the estimate was told."""
    told = []

    def estimate(*arguments):
        told.append(arguments)
        return SimpleNamespace(noise="as sources have it")

    monkeypatch.setattr(by_source, "estimate_noise_of_sources", estimate)
    before = Model(object.__new__(kind), make_unseen(np.full((5, 2), 0.5), fingerprint=fingerprint))
    return before, judge_sources(before, SimpleNamespace(sources=SOURCES), reliability), told


@pytest.mark.parametrize("kind", [TwoClassNoise, SeveralClassesNoise])
@pytest.mark.parametrize("reliability", [None, np.arange(5.0)])
def test_a_model_learns_of_its_sources_from_rows_that_it_has_not_seen(monkeypatch, kind, reliability):
    before, after, [(unseen, noise, trusted)] = judge(monkeypatch, kind=kind, reliability=reliability)
    assert unseen is after.out_of_fold
    assert unseen.context.sources is SOURCES
    assert unseen.posterior is before.out_of_fold.posterior
    assert (noise is before.noise, trusted is reliability) == (True, True)
    assert after.noise == after.sources.noise == "as sources have it"
    assert (before.untwists, after.untwists) == (False, True)


def test_a_model_that_has_not_judged_every_row_stays_as_it_was(monkeypatch):
    before, after, told = judge(monkeypatch, fingerprint=None)
    assert after is before
    assert told == []


@pytest.mark.parametrize("seed", range(30))
def test_sources_differ_much_where_labels_count_for_less_than_92_in_100(seed):
    rng = np.random.default_rng(seed)
    counts, reliability = rng.integers(0, 50, 6), rng.uniform(0.3, 1.0, 6)
    weight = np.repeat(reliability, counts)
    in_effect = weight.sum() ** 2 / (weight**2).sum()
    noise = SimpleNamespace(counts=counts.astype(float), reliability=reliability)
    assert differ_much(noise) is bool(in_effect < 0.92 * len(weight))


def test_a_label_is_worth_what_its_source_is_and_of_an_unknown_one_the_mean():
    noise = SimpleNamespace(counts=np.array([3.0, 1.0]), reliability=np.array([0.5, 1.0]))
    assert weigh_by_reliability(noise, SOURCES).tolist() == [1.0, 0.5, 1.0, 0.625, 0.5]
