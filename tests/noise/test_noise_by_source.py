"""Noise by source: planted sources come out, several votes find the truth, and nothing depends on order or names."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import beta

from untwist.noise import sources
from untwist.noise.rates import estimate_rates
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.source_fits import SourceFit
from untwist.noise.sources import NoiseBySource, _find_middle_of_others, estimate_by_source
from untwist.noise.two_classes import TwoClassNoise
from untwist.noise.votes import arrange_votes


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
        return TwoClassNoise.from_rates((pooled[0, 1], pooled[1, 0]))
    return SeveralClassesNoise.from_matrix(pooled)


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
    assert found.describe().startswith("no source stands out among 6 (about ")


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
        if field.name in ("names", "noise"):
            continue
        first, second = getattr(one, field.name), getattr(other, field.name)
        if order is not None and field.name not in ("common", "evidence", "tells_how_many"):
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
    np.testing.assert_allclose(noise.noisy(clean, sources), expected)


def test_annotators_of_unequal_skill_are_told_apart_by_their_votes_alone():
    rng = np.random.default_rng(0)
    skills = np.array([0.95, 0.9, 0.75, 0.6, 0.55])
    truth = rng.integers(2, size=1000)
    votes = np.where(rng.random((1000, 5)) < skills, truth[:, None], 1 - truth[:, None])
    labels, sources, items = votes.ravel(), np.tile(np.arange(5), 1000), np.repeat(np.arange(1000), 5)
    posterior = np.tile([1 - labels.mean(), labels.mean()], (5000, 1))
    noise = estimate_rates(posterior[:, 1], labels)
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
    noise = TwoClassNoise.from_rates((0.0, 0.0))
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
        ({"weight": [0.0, 0.0]}, "known for at least one row"),
        ({"weight": [0.0, 1.0], "sources": [0, -1]}, "known for at least one row"),
        ({"posterior": [[0.5, 0.5]]}, "a row per label"),
        ({"posterior": [[0.5, np.nan], [0.5, 0.5]]}, "must hold probabilities"),
        ({"weight": [1.0, -1.0]}, "weight must be finite and non-negative"),
        ({"noise": SeveralClassesNoise.from_matrix(np.eye(3))}, "noise must be of 2 classes"),
    ],
)
def test_what_makes_no_sense_is_refused(changed, message):
    arguments = {
        "posterior": [[0.5, 0.5], [0.5, 0.5]],
        "labels": [0, 1],
        "sources": [0, 1],
        "names": ["a", "b"],
        "noise": TwoClassNoise.from_rates((0.1, 0.1)),
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
    noise = estimate_rates(twisted, labels)
    posterior = np.column_stack([1.0 - twisted, twisted])
    assert not noise.found
    found = estimate_by_source(posterior, labels, rng.integers(4, size=60_000), names=np.arange(4), noise=noise)
    for intervals in (found.intervals, found.class_intervals):
        assert (intervals[..., 0] == 0).all()
        assert (intervals[..., 1] > 0.2).all()


# ---- one formula after the other ----


def make_votes(n_rows=60, n_sources=3, n_classes=3, several=False, seed=0):
    rng = np.random.default_rng(seed)
    items = np.repeat(np.arange(n_rows // 3), 3) if several else None
    posterior = rng.dirichlet(np.ones(n_classes), n_rows)
    weight = rng.uniform(0.5, 2.0, n_rows)
    labels, by = rng.integers(n_classes, size=n_rows), rng.integers(n_sources, size=n_rows)
    return arrange_votes(posterior, labels, by, items, weight, np.ones(n_rows), n_sources)


def make_fit(votes, n_sources, n_classes=3, seed=0):
    """Matrices, shares of classes and covariances of sources, drawn."""
    rng = np.random.default_rng(seed)
    matrices = 0.6 * np.eye(n_classes) + 0.4 * rng.dirichlet(np.ones(n_classes), (n_sources, n_classes))
    roots = 0.02 * rng.normal(size=(n_sources, n_classes, n_classes))
    return SourceFit(
        component=None,
        matrices=matrices,
        prior=None,
        covariance=np.einsum("sij,skj->sik", roots, roots),
        class_shares=rng.dirichlet(np.ones(n_classes), n_sources),
        shares=rng.uniform(0.1, 0.3, n_sources),
        clean=rng.dirichlet(np.ones(n_classes), len(votes.first)),
        gain=0.0,
        evidence=0.0,
    )


def test_a_beta_distribution_has_the_mean_and_the_variance_that_it_is_matched_to():
    means, variances = np.array([0.02, 0.3, 0.9]), np.array([1e-4, 0.01, 0.003])
    for mean, variance, a, b in zip(means, variances, *sources._match_beta(means, variances), strict=True):
        assert beta(a, b).mean() == pytest.approx(mean)
        assert beta(a, b).var() == pytest.approx(variance)
    # No more variance than even odds of both ends would have, none at all, and means of 0 and 1.
    np.testing.assert_allclose(sources._match_beta(np.array([0.3]), np.array([9.0])), [[0.3], [0.7]])
    assert np.sum(sources._match_beta(np.array([0.5]), np.zeros(1))) == pytest.approx(0.25e12)
    np.testing.assert_allclose(sources._match_beta(np.array([0.0, 1.0]), np.ones(2))[0], [1e-4, 1 - 1e-4])


def test_intervals_hold_95_per_cent_of_the_mixture_that_fits_make():
    weights = np.array([0.25, 0.75])
    means, variances = np.array([[0.1, 0.5], [0.3, 0.52]]), np.array([[0.001, 0.002], [0.003, 0.001]])
    found = sources._find_intervals(weights, means, variances)
    for index in range(2):
        mean = weights @ means[:, index]
        variance = weights @ (variances[:, index] + means[:, index] ** 2) - mean**2 + (0.01 / 1.96) ** 2
        size = mean * (1 - mean) / variance - 1
        np.testing.assert_allclose(found[index], beta(size * mean, size * (1 - mean)).ppf([0.025, 0.975]), rtol=1e-9)
    # An end that is next to 0 or 1 is just that, and an interval holds its mean.
    (low, high), (lowest, highest) = sources._find_intervals(np.ones(1), np.array([[2e-4, 1 - 2e-4]]), np.zeros((1, 2)))
    assert low == 0.0
    assert high >= 2e-4
    assert highest == 1.0
    assert lowest <= 1 - 2e-4


def test_rates_of_sources_are_means_over_their_own_classes():
    votes = make_votes()
    fit = make_fit(votes, 3)
    rates, variances = sources._find_rates(fit)
    for s in range(3):
        share = fit.class_shares[s]
        assert rates[s] == pytest.approx(sum(share[k] * (1 - fit.matrices[s, k, k]) for k in range(3)))
        assert variances[s] == pytest.approx(share @ fit.covariance[s] @ share)


def test_the_interval_of_a_share_holds_both_the_rate_and_the_labels_that_happened_to_be_wrong():
    votes = make_votes()
    fits = [replace(make_fit(votes, 3, seed=seed), shares=np.array([0.05, 0.6, 0.1 * seed])) for seed in (0, 1)]
    weights = np.array([0.4, 0.6])
    shares, intervals = sources._find_shares(fits, weights)
    np.testing.assert_allclose(shares, 0.4 * fits[0].shares + 0.6 * fits[1].shares)
    rates, variances = (np.array(each) for each in zip(*map(sources._find_rates, fits), strict=True))
    of_rates = sources._find_intervals(weights, rates, variances)
    of_shares = sources._find_intervals(weights, np.array([fit.shares for fit in fits]), variances)
    assert (of_rates[:, 0] < of_shares[:, 0]).any()
    assert (of_rates[:, 0] > of_shares[:, 0]).any()
    np.testing.assert_array_equal(intervals[:, 0], np.minimum(of_rates[:, 0], of_shares[:, 0]))
    np.testing.assert_array_equal(intervals[:, 1], np.maximum(of_rates[:, 1], of_shares[:, 1]))


def test_sources_stand_out_by_the_probability_to_be_noisier_than_the_others():
    votes = make_votes(n_sources=5)
    fits = [make_fit(votes, 5, seed=seed) for seed in (2, 3)]
    totals = np.bincount(votes.source, votes.vote_weight, 5)
    not_noisier = np.zeros(5)
    for weight, fit in zip([0.3, 0.7], fits, strict=True):
        rates, variances = sources._find_rates(fit)
        usual = _find_middle_of_others(rates, totals)
        for s in range(5):
            least = min(max(1.5 * usual[s], usual[s] + 0.05), 1.0)
            a, b = sources._match_beta(rates[[s]], variances[[s]])
            not_noisier[s] += weight * beta(a[0], b[0]).cdf(least)
    expected = sources._select_noisier(not_noisier)
    np.testing.assert_array_equal(sources._find_noisier(votes, fits, np.array([0.3, 0.7])), expected)


def test_the_largest_set_is_selected_that_few_do_not_belong_to():
    chances = np.array([0.2, 0.01, 0.09, 0.9, 0.05])
    assert sources._select_noisier(chances).tolist() == [False, True, True, False, True]  # The mean of three is 0.05.
    assert sources._select_noisier(np.array([0.06, 0.05])).tolist() == [False, True]
    assert not sources._select_noisier(np.array([0.06])).any()


def test_reliability_is_signal_over_variance_beside_the_best():
    votes = make_votes(n_sources=4)
    fit = make_fit(votes, 5)  # The last source has no labels.
    fit.matrices[1] = np.roll(np.eye(3), 1, axis=1)  # Worse than chance.
    votes = votes._replace(n_sources=5)
    expected, followed = [], []
    for s in range(5):
        mine = np.flatnonzero(votes.source == s)
        gini = [(t * (1 - t)).sum() / 2 for t in (fit.clean[votes.item[vote]] @ fit.matrices[s] for vote in mine)]
        weight = votes.weight[votes.item[mine]]
        followed.append((weight @ np.array(gini), weight.sum()))
    typical = sum(one for one, _ in followed) / sum(total for _, total in followed)
    for s, (gini, total) in enumerate(followed):
        signal = max((np.trace(fit.matrices[s]) - 1) / 2, 0.0)
        expected.append(signal / max(gini / total if total else typical, 0.05))
    np.testing.assert_allclose(sources._rate_reliability(votes, fit), expected)
    both = sources._find_reliability(votes, [fit, make_fit(votes, 5, seed=1)], np.array([0.5, 0.5]))
    assert both.max() == 1.0
    alone = sources._find_reliability(votes, [fit], np.ones(1))
    np.testing.assert_allclose(alone, np.maximum(np.array(expected) / max(expected), 0.02))
    assert alone[1] == 0.02
    hopeless = replace(fit, matrices=np.full((5, 3, 3), 1 / 3))
    np.testing.assert_array_equal(sources._find_reliability(votes, [hopeless], np.ones(1)), np.ones(5))


def test_sources_count_for_a_few_where_the_noise_of_all_labels_is_weighed():
    assert sources._find_trust(make_votes(60, 1)) == 0.0
    assert sources._find_trust(make_votes(60, 2)) == 1.0
    assert sources._find_trust(make_votes(3000, 40)) == 0.5
    votes = make_votes()
    votes = votes._replace(weight=votes.weight * (1e4 / votes.weight.sum()))
    np.testing.assert_allclose(sources._temper_gains(votes, np.array([-8.0, 0.0, 8.0])), np.log1p(np.exp([-4, 0, 4])))


def test_there_are_as_many_components_as_take_seconds(monkeypatch):
    votes, voted = make_votes(), make_votes(several=True)
    assert (sources._limit_components(votes), sources._limit_components(voted)) == (24, 4)
    # There are 60 votes, and 20 cells more for each of three sources.
    for cells, most in ((1199, 9), (1200, 10), (100, 4), (10**5, 24)):
        monkeypatch.setattr(sources, "MOST_CELLS", cells)
        assert sources._limit_components(votes) == most


def make_noise_by_source(**changed):
    matrices = np.array([make_matrix(2, 0.1), make_matrix(2, 0.3), [[0.5, 0.5], [0.0, 1.0]]])
    fields = {
        "names": np.array(["a", "b", "c"]),
        "counts": np.array([10.0, 30.0, 60.0]),
        "matrices": matrices,
        "common": make_matrix(2, 0.2),
        "shares": np.array([0.1, 0.3, 0.25]),
        "intervals": np.array([[0.05, 0.15], [0.2, 0.4], [0.2, 0.3]]),
        "class_intervals": np.zeros((3, 2, 2)),
        "stands_out": np.array([False, True, True]),
        "reliability": np.ones(3),
        "evidence": 1.0,
        "noise": TwoClassNoise.from_rates((0.1, 0.2)),
    }
    return NoiseBySource(**(fields | changed))


def test_words_name_the_worst_sources_first():
    noise = make_noise_by_source()
    start = "noisier than the others (about 20.0% wrong): b 30.0% (20.0% to 40.0%)"
    assert str(noise) == f"{start}, c 25.0% (20.0% to 30.0%)"
    assert noise.describe(2) == str(noise)
    assert noise.describe(1) == f"{start}, and 1 more"
    common = np.array([[0.9, 0.1], [0.4, 0.6]])
    alike = make_noise_by_source(stands_out=np.zeros(3, dtype=bool), common=common)
    # Of labels, half are of the first class by the matrices here: (10 + 30 + 60) / (2 * 100).
    assert str(alike) == "no source stands out among 3 (about 25.0% of their labels wrong)"
    unfounded = replace(alike, noise=replace(alike.noise, found=False))
    assert str(unfounded) == "no source stands out among 3"


def test_words_tell_no_share_that_may_be_higher():
    noise = make_noise_by_source()
    opened = noise.drop_upper_limits()
    assert str(opened) == "noisier than the others (by how much cannot be told): b, c"
    assert opened.describe(1) == "noisier than the others (by how much cannot be told): b, and 1 more"
    assert "%" in noise._repr_html_()
    assert "%" not in opened._repr_html_().replace(str(opened), "")
    assert opened.intervals.tolist() == [[0.05, 1.0], [0.2, 1.0], [0.2, 1.0]]
    assert (opened.class_intervals == [0.0, 1.0]).all()
    assert (opened.shares is noise.shares, noise.intervals[0, 1]) == (True, 0.15)
    assert str(replace(opened, stands_out=np.zeros(3, dtype=bool))) == "no source stands out among 3"


def test_an_unknown_source_errs_as_all_labels_do_together():
    noise = make_noise_by_source()
    overall = (10 * noise.matrices[0] + 30 * noise.matrices[1] + 60 * noise.matrices[2]) / 100
    np.testing.assert_allclose(noise.overall, overall)
    np.testing.assert_allclose(noise.matrices_by_index[[0, -1]], [noise.matrices[0], overall])
    np.testing.assert_allclose(noise.noisy([[0.3, 0.7]], [-1]), [[0.3, 0.7] @ overall])
    none = make_noise_by_source(counts=np.zeros(3))
    np.testing.assert_allclose(none.overall, none.matrices.mean(axis=0))
    assert noise.find_truth(np.zeros((0, 2)), [], [], []).shape == (0, 2)


@pytest.mark.parametrize("clean", [[[0.3, 0.7], [0.5, 0.5]], [[0.3, 0.3, 0.4]]])
def test_clean_posteriors_of_another_shape_are_refused(clean):
    with pytest.raises(ValueError, match=r"clean must be of shape \(1, 2\)"):
        make_noise_by_source().noisy(clean, [0])


def test_indices_of_any_whole_kind_are_taken_from_the_lowest_to_the_highest():
    for values in ([-1, 2], np.array([0, 1], dtype=np.uint8), np.array([True, False]), []):
        found = sources._check_indices("sources", values, -1, 3)
        assert found.dtype == np.intp
        np.testing.assert_array_equal(found, np.asarray(values, dtype=int))
    for values in ([-2, 0], [0, 3], [[0, 1]], ["a"]):
        with pytest.raises(ValueError, match=r"^sources must"):
            sources._check_indices("sources", values, -1, 3)


def test_posteriors_are_scaled_and_may_miss_1_by_rounding():
    twisted, given, by, of = sources._check_rows([[1 + 5e-7, 0.0], [0.2, 0.2]], [0, 1], [0, -1], None, 1)
    np.testing.assert_allclose(twisted, [[1.0, 0.0], [0.5, 0.5]])
    assert (given.tolist(), by.tolist(), of) == ([0, 1], [0, -1], None)
    assert sources._check_rows([[1.0, 0.0]], [0], [0], [0], 1)[3].tolist() == [0]
    for posterior in ([[1.1, 0.0]], [[0.5, -0.1]], [[0.0, 0.0]]):
        with pytest.raises(ValueError, match="posterior must hold probabilities"):
            sources._check_rows(posterior, [0], [0], None, 1)
    for posterior in ([0.5], [[1.0]], [[0.5, 0.5]] * 2):
        with pytest.raises(ValueError, match="a row per label and a column per class"):
            sources._check_rows(posterior, [0], [0], None, 1)
    for changed in (([0, 0], None), ([0], [0, 0])):
        with pytest.raises(ValueError, match=r"one per row|from 0 to 0"):
            sources._check_rows([[0.5, 0.5]], [0], *changed, 1)


def test_weights_are_checked():
    np.testing.assert_array_equal(sources._check_weight("weight", None, 2), [1.0, 1.0])
    np.testing.assert_array_equal(sources._check_weight("weight", [0, 2], 2), [0.0, 2.0])
    for weight in ([1.0], [1.0, -1.0], [1e308, 1e308], [[1.0, 1.0]]):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="weight must be finite and non-negative"):
            sources._check_weight("weight", weight, 2)
