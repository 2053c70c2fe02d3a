"""Noise by source: planted sources come out, several votes find the truth, and nothing depends on order or names."""

from dataclasses import fields

import numpy as np
import pytest
from scipy.special import expit

from untwist.noise.matrix import MatrixUntwisting
from untwist.noise.rates import estimate_noise
from untwist.noise.sources import NoiseBySource, _find_middle_of_others, estimate_by_source
from untwist.noise.untwisting import Untwisting


def draw_classes(probabilities, rng):
    """One class per row of probabilities."""
    return (probabilities.cumsum(axis=1)[:, :-1] < rng.random((len(probabilities), 1))).sum(axis=1)


def make_matrix(n_classes, rate):
    matrix = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(matrix, 1.0 - rate)
    return matrix


def plant(rates, *, n_classes=2, n_rows=2400, strength=6.0, seed=0):
    """Rows of sources that mislabel at these rates: what all labels follow, labels, sources and truths."""
    rng = np.random.default_rng(seed)
    score = strength * rng.normal(size=(n_rows, n_classes))
    clean = np.exp(score - score.max(axis=1, keepdims=True))
    clean /= clean.sum(axis=1, keepdims=True)
    truth = draw_classes(clean, rng)
    matrices = np.array([make_matrix(n_classes, rate) for rate in rates])
    sources = rng.integers(len(rates), size=n_rows)
    labels = draw_classes(matrices[sources, truth], rng)
    pooled = matrices[sources].mean(axis=0)
    return clean @ pooled, labels, sources, truth, pooled


def know(pooled):
    """The noise of all labels, known."""
    if len(pooled) == 2:
        return Untwisting.from_rates((pooled[0, 1], pooled[1, 0]))
    return MatrixUntwisting.from_matrix(pooled)


def estimate(rates, **options):
    posterior, labels, sources, truth, pooled = plant(rates, **options)
    names = np.arange(len(rates))
    return estimate_by_source(posterior, labels, sources, names=names, noise=know(pooled)), truth


RATES = (0.45, 0.0, 0.02, 0.05, 0.01, 0.03)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_bad_source_among_good_ones_stands_out_alone(n_classes):
    posterior, labels, sources, truth, pooled = plant(RATES, n_classes=n_classes)
    found = estimate_by_source(posterior, labels, sources, names=list("abcdef"), noise=know(pooled))
    assert found.stands_out.tolist() == [True] + [False] * 5
    real = [np.mean((labels != truth)[sources == each]) for each in range(6)]
    np.testing.assert_allclose(found.shares, real, atol=0.05)
    assert (found.intervals[:, 0] <= real).all()
    assert (real <= found.intervals[:, 1]).all()
    assert found.reliability[0] < 0.3
    assert found.reliability.max() == 1.0
    assert found.evidence > 20
    wrong = 1.0 - found.find_truth(posterior, labels, sources)[np.arange(len(labels)), labels]
    planted = (sources == 0) & (labels != truth)
    assert np.mean(wrong[planted] > 0.5) > 0.8
    assert found.describe().startswith("noisier than the others")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sources_that_are_alike_are_not_accused(n_classes):
    found, _ = estimate([0.1] * 6, n_classes=n_classes)
    assert not found.stands_out.any()
    assert found.evidence < 5
    assert np.ptp(found.shares) < 0.06
    assert found.describe().startswith("none of 6 sources")


def test_a_source_that_is_worse_than_chance_comes_out_so():
    found, _ = estimate([0.9, 0.02, 0.02, 0.03, 0.02])
    assert found.shares[0] > 0.8
    assert found.matrices[0, 0, 0] < 0.2
    assert found.matrices[0, 1, 1] < 0.2
    assert found.reliability[0] == pytest.approx(0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_source_is_like_all_labels(n_classes):
    posterior, labels, _, _, pooled = plant([0.2], n_classes=n_classes)
    found = estimate_by_source(posterior, labels, np.zeros(len(labels), int), names=["all"], noise=know(pooled))
    np.testing.assert_allclose(found.matrices[0], pooled, atol=0.05)
    assert not found.stands_out.any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_two_sources_that_are_equally_bad_are_not_accused_and_the_worse_of_two_is(n_classes):
    found, _ = estimate([0.2, 0.2], n_classes=n_classes)
    assert not found.stands_out.any()
    found, _ = estimate([0.02, 0.4], n_classes=n_classes)
    assert found.stands_out.tolist() == [False, True]


def find_middle_slowly(rates, totals):
    """The rate of the others, source by source."""
    answer = []
    for source in range(len(rates)):
        others = sorted((rates[each], totals[each]) for each in range(len(rates)) if each != source)
        half, until = sum(total for _, total in others) / 2, 0.0
        middle = 1.0
        for rate, total in others:
            until += total
            if half > 0 and until >= half:
                middle = rate
                break
        answer.append(middle)
    return answer


@pytest.mark.parametrize("n_sources", [1, 2, 3, 10])
def test_the_middle_of_the_others_is_that_of_the_slow_twin(n_sources):
    rng = np.random.default_rng(n_sources)
    for _ in range(30):
        rates, totals = rng.random(n_sources), rng.integers(0, 5, n_sources).astype(float)
        np.testing.assert_array_equal(_find_middle_of_others(rates, totals), find_middle_slowly(rates, totals))


def test_a_source_of_three_labels_is_about_the_common_one():
    posterior, labels, sources, _, pooled = plant(RATES)
    posterior = np.concatenate([posterior, [[0.9, 0.1]] * 3])
    labels, sources = np.append(labels, [1, 0, 0]), np.append(sources, [6, 6, 6])
    found = estimate_by_source(posterior, labels, sources, names=np.arange(7), noise=know(pooled))
    assert not found.stands_out[6]
    low, high = found.intervals[6]
    assert high - low > 0.1


# ---- order, names, weights ----


def compare(one, other, order=None):
    for field in fields(NoiseBySource):
        if field.name in ("names", "untwisting"):
            continue
        first, second = getattr(one, field.name), getattr(other, field.name)
        if order is not None and field.name not in ("common", "evidence"):
            second = second[order]
        np.testing.assert_array_equal(first, second, err_msg=field.name)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("several", [False, True])
def test_neither_the_order_of_rows_nor_the_names_of_sources_and_items_matter(n_classes, several):
    rng = np.random.default_rng(0)
    posterior, labels, sources, _, pooled = plant(RATES, n_classes=n_classes, n_rows=600)
    weight = rng.uniform(0.5, 2.0, len(labels))
    items = None
    if several:
        items = rng.permutation(len(labels)) // 2
        posterior = posterior[np.unique(items, return_index=True)[1]][items]
    shuffled, renamed = rng.permutation(len(labels)), rng.permutation(6)
    options = {"names": np.arange(6), "noise": know(pooled)}
    one = estimate_by_source(posterior, labels, sources, weight=weight, items=items, **options)
    other = estimate_by_source(
        posterior[shuffled],
        labels[shuffled],
        renamed[sources[shuffled]],
        weight=weight[shuffled],
        items=None if items is None else (items.max() - items)[shuffled],
        **options,
    )
    compare(one, other, renamed)
    truth = one.find_truth(posterior, labels, sources, items)
    moved = one.find_truth(
        posterior[shuffled], labels[shuffled], sources[shuffled], None if items is None else items[shuffled]
    )
    np.testing.assert_array_equal(truth if several else truth[shuffled], moved)


def test_rows_of_weight_0_and_of_unknown_sources_do_not_count():
    posterior, labels, sources, _, pooled = plant(RATES, n_rows=1200)
    options = {"names": np.arange(6), "noise": know(pooled)}
    one = estimate_by_source(posterior, labels, sources, **options)
    extra = np.full(len(labels), 1)
    more = estimate_by_source(
        np.tile(posterior, (3, 1)),
        np.concatenate([labels, 1 - labels, labels]),
        np.concatenate([sources, sources, -extra]),
        weight=np.concatenate([extra, 0 * extra, extra]),
        **options,
    )
    compare(one, more)


def test_a_label_of_weight_2_is_two_labels():
    posterior, labels, sources, _, pooled = plant(RATES, n_rows=900)
    options = {"names": np.arange(6), "noise": know(pooled)}
    twice = estimate_by_source(np.tile(posterior, (2, 1)), np.tile(labels, 2), np.tile(sources, 2), **options)
    heavy = estimate_by_source(posterior, labels, sources, weight=np.full(900, 2), **options)
    np.testing.assert_allclose(twice.matrices, heavy.matrices, atol=1e-8)
    np.testing.assert_allclose(twice.intervals, heavy.intervals, atol=1e-8)


# ---- several votes ----


def find_truth_slowly(noise, posterior, labels, sources, items):
    """Bayes's rule, item by item and class by class."""
    matrices = [*noise.matrices, np.average(noise.matrices, axis=0, weights=noise.counts)]
    answer = []
    for item in range(max(items) + 1):
        rows = [row for row in range(len(items)) if items[row] == item]
        clean = noise.clean(posterior[rows[:1]])[0]
        odds = [clean[k] * np.prod([matrices[sources[row]][k][labels[row]] for row in rows]) for k in range(len(clean))]
        answer.append([each / sum(odds) for each in odds])
    return np.array(answer)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_truth_is_that_of_the_slow_twin(n_classes):
    rng = np.random.default_rng(0)
    posterior, labels, sources, _, pooled = plant(RATES, n_classes=n_classes, n_rows=300)
    noise = estimate_by_source(posterior, labels, sources, names=np.arange(6), noise=know(pooled))
    items = rng.permutation(300) // 3
    posterior = posterior[np.unique(items, return_index=True)[1]][items]
    sources = np.where(rng.random(300) < 0.1, -1, sources)
    truth = noise.find_truth(posterior, labels, sources, items)
    np.testing.assert_allclose(truth, find_truth_slowly(noise, posterior, labels, sources, items), atol=1e-10)
    alone = noise.find_truth(posterior, labels, sources)
    np.testing.assert_allclose(alone, find_truth_slowly(noise, posterior, labels, sources, range(300)), atol=1e-10)


def test_what_labels_follow_is_the_clean_posterior_by_the_matrix_of_the_source():
    noise, _ = estimate(RATES)
    clean = np.random.default_rng(0).dirichlet(np.ones(2), 5)
    sources = np.array([0, 3, -1, 5, 0])
    unknown = np.average(noise.matrices, axis=0, weights=noise.counts)
    matrices = [noise.matrices[0], noise.matrices[3], unknown, noise.matrices[5], noise.matrices[0]]
    expected = [row @ matrix for row, matrix in zip(clean, matrices, strict=True)]
    np.testing.assert_allclose(noise.twist(clean, sources), expected)


def test_annotators_of_unequal_skill_are_told_apart_by_their_votes_alone():
    rng = np.random.default_rng(0)
    skills = np.array([0.95, 0.9, 0.75, 0.6, 0.55])
    truth = rng.integers(2, size=1000)
    votes = np.where(rng.random((1000, 5)) < skills, truth[:, None], 1 - truth[:, None])
    labels, sources, items = votes.ravel(), np.tile(np.arange(5), 1000), np.repeat(np.arange(1000), 5)
    posterior = np.tile([1 - labels.mean(), labels.mean()], (5000, 1))
    noise = estimate_noise(posterior[:, 1], labels)
    found = estimate_by_source(posterior, labels, sources, names=np.arange(5), noise=noise, items=items)
    np.testing.assert_allclose(np.einsum("skk->s", found.matrices) / 2, skills, atol=0.06)
    answer = found.find_truth(posterior, labels, sources, items).argmax(axis=1)
    assert np.mean(answer == truth) > np.mean((votes.mean(axis=1) > 0.5) == truth) + 0.02


# ---- what is unusual ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sources_of_one_class_without_rows_and_with_one_row_break_nothing(n_classes):
    posterior, labels, sources, _, pooled = plant(RATES, n_classes=n_classes, n_rows=400)
    kept = (
        (sources != 1)
        & ((sources != 2) | (labels == 0))
        & ((sources != 3) | (np.arange(400) == np.argmax(sources == 3)))
    )
    found = estimate_by_source(posterior[kept], labels[kept], sources[kept], names=np.arange(6), noise=know(pooled))
    for field in ("matrices", "shares", "intervals", "class_intervals", "reliability", "counts"):
        assert np.isfinite(getattr(found, field)).all(), field
    assert found.counts[1] == 0
    np.testing.assert_allclose(found.matrices.sum(axis=2), 1.0)
    assert (found.intervals[:, 0] <= found.shares).all()
    assert (found.shares <= found.intervals[:, 1]).all()


def test_posteriors_of_0_and_1_and_labels_of_one_class_break_nothing():
    posterior = np.array([[1.0, 0.0], [0.0, 1.0]] * 20)
    noise = Untwisting.from_rates((0.0, 0.0))
    for labels in (np.zeros(40, int), np.tile([1, 0], 20)):
        found = estimate_by_source(posterior, labels, np.arange(40) % 3, names=list("abc"), noise=noise)
        assert np.isfinite(found.intervals).all()
        assert np.isfinite(found.find_truth(posterior, labels, np.arange(40) % 3)).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": [0, 2]}, "labels must lie from 0 to 1"),
        ({"labels": [0.5, 1.0]}, "labels must be whole numbers"),
        ({"sources": [0, 2]}, "sources must lie from -1 to 1"),
        ({"sources": [0]}, "one per row"),
        ({"sources": [-1, -1]}, "known for at least one row"),
        ({"posterior": [[0.5, 0.5]]}, "a row per label"),
        ({"posterior": [[0.5, np.nan], [0.5, 0.5]]}, "must hold probabilities"),
        ({"weight": [1.0, -1.0]}, "weight must be finite and non-negative"),
        ({"noise": MatrixUntwisting.from_matrix(np.eye(3))}, "noise must be of 2 classes"),
    ],
)
def test_what_makes_no_sense_is_refused(changed, message):
    arguments = {
        "posterior": [[0.5, 0.5], [0.5, 0.5]],
        "labels": [0, 1],
        "sources": [0, 1],
        "names": ["a", "b"],
        "noise": Untwisting.from_rates((0.1, 0.1)),
    } | changed
    with pytest.raises(ValueError, match=message):
        estimate_by_source(**arguments)


@pytest.mark.parametrize("is_sharp", [True, False])
def test_sources_that_are_alike_leave_open_what_all_labels_leave_open(is_sharp):
    # The matrix of every source has to be found under noise: that spoke against it, the more the more rows there were.
    rng = np.random.default_rng(0)
    score = rng.normal(size=60_000)
    positive = (score > 0) + 0.0 if is_sharp else expit(5.0 * score)
    twisted = 0.2 + 0.6 * positive
    labels = (rng.random(60_000) < twisted).astype(int)
    noise = estimate_noise(twisted, labels)
    posterior = np.column_stack([1.0 - twisted, twisted])
    assert not noise.found
    found = estimate_by_source(posterior, labels, rng.integers(4, size=60_000), names=np.arange(4), noise=noise)
    for intervals in (found.intervals, found.class_intervals):
        assert (intervals[..., 0] == 0).all()
        assert (intervals[..., 1] > 0.2).all()
