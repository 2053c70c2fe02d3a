"""The audit by source: bad sources are named and good ones are not, items are judged by all their labels."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from untwist import UntwistClassifier
from untwist.audit import audit_labels, sources
from untwist.audit.correcting import find_likely_wrong
from untwist.audit.judging import find_unseen_share, judge_by_source, move_interval
from untwist.audit.sources import Disagreement, SourceQuality, find_disagreements, judge_items, rate_sources
from untwist.audit.verdict import find_verdict
from untwist.data.sources import LabelSources
from untwist.display import write_percent, write_range, write_share
from untwist.noise.rates import estimate_rates
from untwist.noise.sources import NoiseBySource, estimate_by_source
from untwist.noise.transitions import estimate_transitions
from untwist.noise.two_classes import TwoClassNoise
from untwist.twists import alpha_star

BRANCHES = np.array(["Bonn", "Gera", "Jena", "Leipzig", "Ulm"])


def draw_branches(n=2000, seed=0, rate=0.45):
    """Rows of five branches, one of which mislabels many; and which labels are wrong."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(list("xyz"), n)})
    truth = (X["a"] + (X["c"] == "x") - 0.3 > 0).to_numpy()
    branch = rng.choice(BRANCHES, n)
    wrong = rng.random(n) < np.where(branch == "Leipzig", rate, 0.03)
    return X, np.where(truth ^ wrong, "stays", "leaves"), branch, wrong


def draw_annotators(n_items=700, labels_per_item=3, n_classes=2, seed=0):
    """Items with several labels each, by annotators of unequal skill; and the truth of every item."""
    rng = np.random.default_rng(seed)
    centres = 1.6 * np.eye(n_classes, 4)
    truth = rng.integers(0, n_classes, n_items)
    features = rng.normal(size=(n_items, 4)) + centres[truth]
    skill = np.linspace(0.6, 0.95, 8)
    who = np.array([rng.choice(8, labels_per_item, replace=False) for _ in range(n_items)])
    right = rng.random(who.shape) < skill[who]
    other = (truth[:, None] + rng.integers(1, n_classes, who.shape)) % n_classes
    votes = np.where(right, truth[:, None], other)
    item = np.repeat(np.arange(n_items), labels_per_item)
    names = np.array([f"annotator {i}" for i in range(8)])
    return features[item], votes.ravel(), names[who.ravel()], item, truth


@pytest.fixture(scope="module")
def branches():
    X, y, branch, wrong = draw_branches()
    return audit_labels(X, y, source=branch), wrong


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def annotated(request):
    X, y, who, item, truth = draw_annotators(n_classes=request.param)
    names = np.array([f"item {i:04d}" for i in item])
    return audit_labels(X, y, source=who, item=names), truth, item


# ---- one bad source ----


def test_the_bad_branch_is_named_and_no_other(branches):
    audit, wrong = branches
    first, *others = audit.sources.rate()
    here = audit.context.source == "Leipzig"
    assert first.name == "Leipzig"
    assert [one.name for one in audit.sources.rate() if one.stands_out] == ["Leipzig"]
    assert first.labels == np.count_nonzero(here)
    assert first.low <= wrong[here].mean() <= first.high
    assert first.share_wrong == pytest.approx(wrong[here].mean(), abs=0.05)
    assert first.expected_wrong == pytest.approx(audit.wrong[here].sum())
    assert [one.share_wrong for one in others] == sorted((one.share_wrong for one in others), reverse=True)
    assert sorted(one.name for one in [first, *others]) == BRANCHES.tolist()


def test_wrong_labels_of_the_bad_branch_are_found(branches):
    audit, wrong = branches
    here = wrong & (audit.context.source == "Leipzig")
    suspects = audit.suspects()
    assert np.isin(np.flatnonzero(here), suspects).mean() > 0.8
    assert wrong[suspects].mean() > 0.85
    share, low, high = audit.noise_rate
    assert low <= wrong.mean() <= high
    assert share == pytest.approx(audit.wrong.mean())
    for label, rate in audit.rate_by_label.items():
        assert rate[1] <= wrong[audit.given == label].mean() <= rate[2]
        assert rate[0] == pytest.approx(audit.wrong[audit.given == label].mean())


def test_the_words_name_the_branch_and_say_what_to_do(branches):
    audit, _ = branches
    first = audit.sources.rate()[0]
    words = str(audit)
    assert (
        f"{write_share(first.share_wrong)} of the labels of Leipzig are wrong ({write_range(first.low, first.high)})"
        in words
    )
    assert f"about {first.expected_wrong:,.0f} of {first.labels:,}; review them first, or leave them out" in words
    assert "Ulm" not in words
    assert "items" not in words
    assert "disagree" not in words


def test_what_is_looked_at_and_what_was_given_go_together(branches):
    audit, _ = branches
    frame = audit.to_frame()
    assert frame["source"].tolist() == audit.context.source.tolist()
    assert frame["item"].tolist() == list(range(len(frame)))
    np.testing.assert_allclose(audit.truth.sum(axis=1), 1.0)
    np.testing.assert_allclose(1 - audit.truth[np.arange(len(frame)), audit.label_indices], audit.wrong, atol=1e-12)
    flipped = audit.wrong > 0.5
    assert (audit.predicted[flipped] != audit.given[flipped]).all()
    assert audit.explain(int(audit.ranking[0])).predicted == audit.predicted[audit.ranking[0]]
    assert (audit.corrected() != audit.given).sum() == len(find_likely_wrong(audit, audit.suspects()))


def test_alpha_star_undoes_the_noise_of_each_row_by_its_own_source(branches):
    audit, _ = branches
    bad, good = audit.context.source == "Leipzig", audit.context.source == "Bonn"
    clear = np.abs(audit.clean[:, 1] - 0.5) > 0.3
    assert np.median(audit.sources.alpha_star[bad & clear]) > 3 * np.median(audit.sources.alpha_star[good & clear])
    for row in range(0, 2000, 97):
        matrix = audit.context.by_source.matrices[
            audit.context.by_source.names.tolist().index(audit.context.source[row])
        ]
        followed = audit.clean[row] @ matrix
        assert audit.sources.alpha_star[row] == pytest.approx(alpha_star(audit.clean[row, 1], followed[1]), rel=1e-9)


def test_alpha_star_without_sources_is_that_of_all_labels_and_of_two_classes_only():
    X, y, _, _ = draw_branches(400)
    audit = audit_labels(X, y)
    np.testing.assert_allclose(audit.sources.alpha_star, alpha_star(audit.clean[:, 1], audit.posterior[:, 1]))
    features, labels, *_ = draw_annotators(100, n_classes=3)
    with pytest.raises(ValueError, match="alpha_star is for two classes, and there are 3"):
        audit_labels(features, labels).sources.alpha_star  # noqa: B018


def test_without_sources_there_are_none():
    X, y, _, _ = draw_branches(300)
    audit = audit_labels(X, y)
    assert (audit.context.source, audit.context.item, audit.context.by_source) == (None, None, None)
    assert (audit.sources.rate(), audit.sources.find_disagreements(), audit.sources.judge_items()) == ([], [], [])
    assert audit.verdict.sources == ()
    assert (audit.sources.labels_per_item, audit.sources.share_repeated) == (1.0, 0.0)
    assert list(audit.to_frame()) == ["is_label_issue", "label_quality", "given_label", "predicted_label"]
    assert len(audit.sources.to_frame()) == len(audit.sources.items_to_frame()) == 0


def test_good_sources_are_not_accused():
    X, y, branch, _ = draw_branches(1500, seed=3, rate=0.03)
    audit = audit_labels(X, y, source=branch)
    assert not any(one.stands_out for one in audit.sources.rate())
    assert "no source stands out among 5" in str(audit)


def test_where_no_source_stands_out_only_the_share_in_common_is_told(monkeypatch, branches):
    audit, _ = branches
    assert audit.noise.found
    few = [quality(name=name, share_wrong=share, stands_out=False) for name, share in (("u1", 0.929), ("u2", 0.0))]
    monkeypatch.setattr("untwist.audit.audited_sources.rate_sources", lambda *_: few)
    share, low, high = audit.noise_rate
    in_common = f"of the labels of all {write_percent(share, low, high)} are wrong"
    assert [one.python for one in find_verdict(audit).sources] == [f"no source stands out among 2: {in_common}"]
    monkeypatch.setattr("untwist.audit.audited_sources.rate_sources", lambda *_: few[:1])
    assert [one.python for one in find_verdict(audit).sources] == ["no source stands out among 1"]


def test_neither_the_order_of_rows_nor_the_names_of_sources_matter(branches):
    audit, _ = branches
    X, y, branch, _ = draw_branches()
    order = np.random.default_rng(1).permutation(len(y))
    renamed = np.char.add("zyxwv", branch.astype(str))
    other = audit_labels(X.iloc[order], y[order], source=renamed[order], n_jobs=2)
    np.testing.assert_array_equal(other.wrong, audit.wrong[order])
    np.testing.assert_array_equal(other.predicted, audit.predicted[order])
    assert other.noise_rate == audit.noise_rate
    assert other.rate_by_label == audit.rate_by_label
    assert [replace(one, name=one.name.removeprefix("zyxwv")) for one in other.sources.rate()] == audit.sources.rate()


def test_a_fitted_model_brings_its_sources_and_others_are_refused(monkeypatch):
    X, y, branch, _ = draw_branches(500)
    model = UntwistClassifier(random_state=0).fit(X, y, source=branch)
    plain = UntwistClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(UntwistClassifier, "fit", lambda *_, **__: pytest.fail("fitted again"))
    audit = audit_labels(X, y, model)
    again = audit_labels(X, y, model, source=branch)
    assert audit.context.source.tolist() == again.context.source.tolist() == branch.tolist()
    np.testing.assert_array_equal(audit.wrong, again.wrong)
    with pytest.raises(ValueError, match="source must be that of the rows that the model was fitted to"):
        audit_labels(X, y, model, source=branch[::-1])
    with pytest.raises(ValueError, match="source must be one name per row"):
        audit_labels(X, y, model, source=branch[:-1])
    with pytest.raises(ValueError, match="item must be that of the rows that the model was fitted to"):
        audit_labels(X, y, model, source=branch, item=np.arange(500) // 2)
    with pytest.raises(ValueError, match=r"the model was fitted without source: fit it with source=\.\.\."):
        audit_labels(X, y, plain, source=branch)


def test_labels_of_no_known_source_are_judged_as_those_of_all(branches):
    X, y, branch, _ = draw_branches()
    some = np.where(np.arange(len(y)) % 10 == 0, None, branch)
    audit = audit_labels(X, y, source=some)
    assert audit.context.source.tolist() == some.tolist()
    assert sum(one.labels for one in audit.sources.rate()) == len(y) - len(y[::10])
    assert "200 labels are of no known source: they are judged as those of all" in str(audit)
    assert audit.to_frame()["source"].isna().sum() == 200
    assert np.isfinite(audit.wrong).all()


def test_rows_of_weight_0_count_for_nothing_in_the_quality_of_a_source():
    X, y, branch, _ = draw_branches(800)
    weight = np.ones(800)
    weight[:80] = 0.0
    audit = audit_labels(X, y, source=branch, sample_weight=weight)
    assert {one.name: one.labels for one in audit.sources.rate()} == {
        name: int(np.count_nonzero(branch[80:] == name)) for name in BRANCHES
    }


# ---- several labels of one item ----


def test_the_truth_of_items_is_nearer_than_what_most_annotators_say(annotated):
    audit, truth, item = annotated
    n_classes = len(audit.classes)
    votes = np.array([np.bincount(audit.given[item == i], minlength=n_classes) for i in range(len(truth))])
    found = audit.sources.judge_items()
    assert [one.item for one in found] == [f"item {i:04d}" for i in range(len(truth))]
    right = np.mean([one.truth == true for one, true in zip(found, truth, strict=True)])
    assert right > np.mean(votes.argmax(axis=1) == truth) + 0.01
    assert audit.sources.labels_per_item == 3.0
    assert audit.sources.share_repeated == 1.0
    for one, counted in zip(found[:50], votes, strict=False):
        assert one.agreement == counted[one.truth] / 3
        assert len(one.votes) == 3
    assert "labels on average" in str(audit)


def test_all_rows_of_an_item_have_the_same_truth(annotated):
    audit, truth, item = annotated
    for i in range(0, len(truth), 31):
        rows = item == i
        assert len(set(audit.predicted[rows])) == 1
        assert np.ptp(audit.truth[rows], axis=0).max() == 0
    corrected = audit.corrected()
    np.testing.assert_array_equal(corrected, audit.predicted)
    first = np.flatnonzero(corrected != audit.given)[0]
    changed = np.flatnonzero(audit.corrected([first]) != audit.given)
    assert set(item[changed]) == {item[first]}


def test_the_frames_have_the_columns_of_cleanlab(annotated):
    audit, truth, _ = annotated
    frame = audit.sources.items_to_frame()
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    by_annotator = (
        audit.to_frame().assign(vote=audit.label_indices).pivot(index="item", columns="source", values="vote")
    )
    theirs = multiannotator.get_label_quality_multiannotator(by_annotator, audit.clean[::3], verbose=False)
    assert set(frame) <= set(theirs["label_quality"])
    np.testing.assert_array_equal(frame["num_annotations"], theirs["label_quality"]["num_annotations"])
    assert np.mean(frame["consensus_label"].to_numpy() == theirs["label_quality"]["consensus_label"]) > 0.8
    rated = audit.sources.to_frame()
    stats = theirs["annotator_stats"]
    assert set(stats) <= set(rated)
    assert set(stats.index) == set(rated.index)
    pd.testing.assert_series_equal(
        rated["num_examples_labeled"].sort_index(),
        stats["num_examples_labeled"].sort_index(),
        check_names=False,
        check_dtype=False,
    )
    skilled = rated["annotator_quality"].sort_index()
    assert skilled.iloc[-1] > skilled.iloc[0] + 0.15
    assert np.corrcoef(skilled, np.linspace(0.6, 0.95, 8))[0, 1] > 0.9
    assert len(frame) == len(truth)


def test_items_without_names_are_rows_that_are_equal():
    X, y, who, item, _ = draw_annotators(200)
    audit = audit_labels(X, y, source=who)
    first = np.array([np.flatnonzero(item == i)[0] for i in item])
    np.testing.assert_array_equal(audit.context.item, first)
    named = audit_labels(X, y, source=who, item=item)
    np.testing.assert_array_equal(named.context.item, item)
    np.testing.assert_allclose(named.wrong, audit.wrong, atol=1e-9)


def test_a_row_without_the_name_of_an_item_is_one_by_itself():
    X, y, who, item, _ = draw_annotators(200)
    some = np.where(item < 3, None, np.char.add("i", item.astype(str)))
    audit = audit_labels(X, y, source=who, item=some)
    found = {one.item: one for one in audit.sources.judge_items()}
    assert len(found) == 197 + 9
    assert [len(found[f"row {row}"].votes) for row in range(9)] == [1] * 9
    assert len(found["i3"].votes) == 3
    assert audit.context.item[9:12].tolist() == ["i3"] * 3
    again = audit_labels(X, y, audit.model, source=who, item=some)
    np.testing.assert_array_equal(again.context.item, audit.context.item)


def test_annotators_who_mean_something_else_disagree():
    X, y, who, item, _ = draw_annotators(600, seed=5)
    # Two of the better ones turn the classes over, each in another part of the items.
    y = np.where((who == "annotator 6") & (X[:, 3] > 0.25), 1 - y, y)
    y = np.where((who == "annotator 7") & (X[:, 3] < -0.25), 1 - y, y)
    audit = audit_labels(X, y, source=who, item=item)
    first = audit.sources.find_disagreements()[0]
    assert {first.first, first.second} == {"annotator 6", "annotator 7"}
    assert first.stands_out
    assert first.share > first.expected
    assert str(first) in str(audit)


def test_annotators_who_err_by_themselves_disagree_as_expected(annotated):
    audit, _, _ = annotated
    pairs = audit.sources.find_disagreements()
    assert len(pairs) == 28
    assert sum(one.stands_out for one in pairs) <= 1
    total = sum(one.items for one in pairs)
    assert sum(one.share * one.items for one in pairs) / total == pytest.approx(
        sum(one.expected * one.items for one in pairs) / total, abs=0.02
    )


# ---- twins ----


def make_noise(names, matrices, counts, rng):
    n_sources, n_classes = len(names), matrices.shape[1]
    shares = rng.uniform(0, 0.6, n_sources)
    return NoiseBySource(
        names=np.asarray(names),
        counts=np.asarray(counts, dtype=float),
        matrices=matrices,
        common=np.eye(n_classes),
        shares=shares,
        intervals=np.column_stack([0.5 * shares, 0.5 + 0.5 * shares]),
        class_intervals=np.tile([0.0, 1.0], (n_sources, n_classes, 1)),
        stands_out=shares > 0.4,
        reliability=np.ones(n_sources),
        evidence=0.0,
        noise=TwoClassNoise.from_rates((0.1, 0.1)),
    )


def draw_noise_and_votes(seed, n_rows=400, n_sources=6, n_classes=3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    who = rng.integers(-1, n_sources, n_rows)
    item = rng.integers(0, n_rows // 4, n_rows)
    truth = rng.dirichlet(np.ones(n_classes), n_rows // 4)[item]
    matrices = rng.dirichlet(np.ones(n_classes), (n_sources, n_classes))
    counts = np.bincount(who[who >= 0], minlength=n_sources)
    return make_noise(list("ABCDEF")[:n_sources], matrices, counts, rng), truth, labels, who, item, rng


def tail_of_binomial(k, n, p):
    """The probability of k or more of n."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@pytest.mark.parametrize("seed", range(5))
def test_disagreements_are_those_of_the_definition(seed):
    noise, truth, labels, who, item, _ = draw_noise_and_votes(seed)
    expected = {}
    for i, j in itertools.combinations(range(len(labels)), 2):
        if item[i] == item[j] and who[i] != who[j] and min(who[i], who[j]) >= 0:
            pair = tuple(sorted((int(who[i]), int(who[j]))))
            agree = sum(
                truth[i, k] * noise.matrices[pair[0], k, label] * noise.matrices[pair[1], k, label]
                for k in range(3)
                for label in range(3)
            )
            expected.setdefault(pair, []).append((labels[i] != labels[j], 1 - agree))
    p_values = {
        pair: tail_of_binomial(int(sum(d for d, _ in seen)), len(seen), np.mean([p for _, p in seen]))
        for pair, seen in expected.items()
    }
    rising = sorted(p_values.values())
    limit = max((p for rank, p in enumerate(rising, 1) if p <= 0.05 * rank / len(rising)), default=-1.0)
    found = find_disagreements(noise, truth, labels, who, item)
    assert len(found) == len(expected)
    names = noise.names.tolist()
    for one in found:
        pair = names.index(one.first), names.index(one.second)
        seen = expected[pair]
        assert one.items == len(seen)
        assert one.share == pytest.approx(np.mean([d for d, _ in seen]))
        assert one.expected == pytest.approx(np.mean([p for _, p in seen]))
        assert one.stands_out == (p_values[pair] <= limit * (1 + 1e-9))
    excess = [(not one.stands_out, -one.items * (one.share - one.expected)) for one in found]
    assert excess == sorted(excess)
    order = np.random.default_rng(9).permutation(len(labels))
    assert find_disagreements(noise, truth[order], labels[order], who[order], item[order]) == found


def test_there_is_nobody_to_disagree_with():
    noise, truth, labels, who, item, _ = draw_noise_and_votes(0)
    assert find_disagreements(noise, truth, labels, who, np.arange(len(item))) == []
    assert find_disagreements(noise, truth, labels, np.full(len(who), -1), item) == []
    assert find_disagreements(noise, truth, labels, np.zeros(len(who), dtype=int), item) == []


@pytest.mark.parametrize("seed", range(5))
def test_sources_are_rated_by_the_definition(seed):
    noise, _, labels, who, _, rng = draw_noise_and_votes(seed)
    wrong = rng.random(len(labels))
    weight = rng.integers(0, 3, len(labels)).astype(float)
    noise = replace(noise, counts=np.bincount(who[who >= 0], weight[who >= 0], minlength=6))
    found = rate_sources(noise, np.array(list("xyz")), who, wrong, weight)
    assert [one.name for one in found] == [
        noise.names[i] for i in sorted(range(6), key=lambda i: (not noise.stands_out[i], -noise.shares[i], i))
    ]
    for one in found:
        i = noise.names.tolist().index(one.name)
        mine = [row for row in range(len(labels)) if who[row] == i and weight[row] > 0]
        others = [j for j in range(6) if j != i]
        assert one.labels == len(mine)
        assert one.expected_wrong == pytest.approx(sum(wrong[row] for row in mine))
        assert one.others == pytest.approx(np.average(noise.shares[others], weights=noise.counts[others]))
        assert (one.share_wrong, one.low, one.high) == (noise.shares[i], *noise.intervals[i])
        assert [share for _, share, _, _ in one.class_shares] == pytest.approx(
            [1 - noise.matrices[i, k, k] for k in range(3)]
        )


def test_pairs_are_compared_in_blocks(monkeypatch):
    noise, truth, labels, who, item, _ = draw_noise_and_votes(1)
    whole = find_disagreements(noise, truth, labels, who, item)
    for size in (1, 4, len(whole)):
        monkeypatch.setattr(sources, "PAIRS_PER_BLOCK", size)
        assert find_disagreements(noise, truth, labels, who, item) == whole


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_rows_are_those_of_two_loops(seed):
    _, _, labels, who, item, _ = draw_noise_and_votes(seed, n_rows=60)
    expected = {
        tuple(sorted((i, j), key=lambda row: who[row]))
        for i, j in itertools.combinations(range(len(labels)), 2)
        if item[i] == item[j] and who[i] != who[j] and min(who[i], who[j]) >= 0
    }
    first, second = sources._pair_rows(who, item)
    assert len(first) == len(expected)
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected


def test_items_are_judged_by_the_definition():
    _, truth, labels, who, item, _ = draw_noise_and_votes(2, n_rows=80)
    item = np.unique(item, return_inverse=True)[1]
    names = np.array([f"item {one}" for one in range(item.max() + 1)])
    said = np.array(["A", "B", "C", "D", "E", "F", None], dtype=object)[who]
    found = judge_items(np.array(list("xyz")), truth, labels, said, item, names)
    assert [one.item for one in found] == names.tolist()
    for number, one in enumerate(found):
        rows = [row for row in range(80) if item[row] == number]
        best = max(range(3), key=lambda k: truth[rows[0], k])
        assert (one.truth, one.probability) == ("xyz"[best], truth[rows[0], best])
        assert one.agreement == np.mean([labels[row] == best for row in rows])
        assert one.votes == tuple((said[row], "xyz"[labels[row]]) for row in rows)


def test_the_only_source_has_no_others():
    noise, *_ = draw_noise_and_votes(0, n_sources=1)
    (one,) = rate_sources(noise, np.array(list("xyz")), np.zeros(4, dtype=int), np.ones(4), np.ones(4))
    assert math.isnan(one.others)
    assert math.isnan(one.times_as_often)
    assert (one.labels, one.expected_wrong) == (4, 4.0)


def test_many_small_sources_are_rated_in_no_time():
    rng = np.random.default_rng(0)
    who = rng.integers(0, 5000, 30_000)
    noise = make_noise(np.arange(5000), np.tile(np.eye(2), (5000, 1, 1)), np.bincount(who, minlength=5000), rng)
    found = rate_sources(noise, np.arange(2), who, rng.random(30_000), np.ones(30_000))
    assert len(found) == 5000
    assert sum(one.labels for one in found) == 30_000


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.thinned(2)
def test_labels_are_judged_by_source_as_bayes_would(seed, n_classes):
    rng = np.random.default_rng(seed)
    n = 600
    clean = rng.dirichlet(np.full(n_classes, 0.3), n // 2)[np.arange(n) // 2]
    truth = np.array([rng.choice(n_classes, p=row) for row in clean[::2]])[np.arange(n) // 2]
    who = rng.integers(0, 3, n)
    labels = np.where(rng.random(n) < np.array([0.0, 0.1, 0.5])[who], rng.integers(0, n_classes, n), truth)
    posterior = 0.8 * clean + 0.2 / n_classes
    votes = LabelSources(np.array(list("abc")), who, np.arange(n) // 2)
    pooled = (
        TwoClassNoise.from_rates((0.1, 0.1)) if n_classes == 2 else estimate_transitions(posterior, labels, np.ones(n))
    )
    noise = estimate_by_source(posterior, labels, who, names=votes.names, noise=pooled, items=votes.items)
    judged = judge_by_source(noise, votes, posterior, labels, np.ones(n))
    for row in range(0, n, 7):
        chance = noise.clean(posterior[[row]])[0]
        for other in np.flatnonzero(votes.items == votes.items[row]):
            chance = chance * noise.matrices[who[other], :, labels[other]]
        chance = chance / chance.sum()
        assert judged.wrong[row] == pytest.approx(1 - chance[labels[row]], abs=1e-9)
        assert judged.predicted[row] == chance.argmax()
    assert judged.noise.found
    share, low, high = judged.share
    assert low <= share <= high
    assert share == pytest.approx(judged.wrong.mean())
    mean = np.average(noise.shares, weights=noise.counts)
    assert share == pytest.approx(mean, abs=0.02)
    by_class = [1 - noise.matrices[:, k, k] for k in range(n_classes)]
    shares = np.diag(1 - judged.noise.matrix) if n_classes == 2 else judged.noise.class_shares
    for k in range(n_classes):
        assert by_class[k].min() <= shares[k] <= by_class[k].max()


@pytest.mark.slow
def test_the_share_of_all_labels_lies_in_its_interval():
    covered, widths = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        clean = rng.beta(0.15, 0.15, 1500)
        who = rng.integers(0, 6, 1500)
        rates = np.append(rng.uniform(0, 0.08, 5), 0.4)
        truth = rng.random(1500) < clean
        wrong = rng.random(1500) < rates[who]
        labels = (truth ^ wrong).astype(np.intp)
        twisted = clean + rates.mean() * (1 - 2 * clean)
        posterior = np.column_stack([1 - twisted, twisted])
        votes = LabelSources(np.arange(6), who, np.arange(1500))
        noise = estimate_by_source(posterior, labels, who, names=votes.names, noise=estimate_rates(twisted, labels))
        judged = judge_by_source(noise, votes, posterior, labels, np.ones(1500))
        shares = [judged.share, *judged.share_by_label]
        truths = [wrong.mean(), wrong[labels == 0].mean(), wrong[labels == 1].mean()]
        covered.append([low <= true <= high for (_, low, high), true in zip(shares, truths, strict=True)])
        widths.append(judged.share[2] - judged.share[1])
    assert np.sum(covered, axis=0).min() >= 5
    assert np.median(widths) < 0.11


def test_a_label_that_stands_alone_says_nothing_of_what_the_row_looks_like():
    posterior = np.array([[0.45, 0.55], [0.02, 0.98], [0.98, 0.02]])
    labels = np.array([0, 0, 0])
    votes = LabelSources(np.array(["a"]), np.zeros(3, dtype=int), np.arange(3))
    noise = make_noise(["a"], np.array([[[0.9, 0.1], [0.1, 0.9]]]), [3], np.random.default_rng(0))
    judged = judge_by_source(noise, votes, posterior, labels, np.ones(3))
    assert judged.wrong[0] < 0.5 < judged.wrong[1]
    assert judged.predicted.tolist() == [1, 1, 0]


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.3, 1.0])
def test_an_interval_is_moved_by_log_odds(share):
    low, high = move_interval(share, (0.2, 0.1, 0.4))
    assert low <= share <= high
    if 0 < share < 1:
        odds = share / (1 - share)
        assert low / (1 - low) == pytest.approx(odds * (1 / 9) / (1 / 4))
        assert high / (1 - high) == pytest.approx(odds * (2 / 3) / (1 / 4))
    assert 1 - (1 - find_unseen_share(100)) ** 100 == pytest.approx(0.95)


# ---- words ----


def quality(**changes):
    plain = SourceQuality("Ulm", 700, 0.44, 0.38, 0.52, 312.2, 0.11, (("no", 0.4, 0.3, 0.5),), stands_out=True)
    return replace(plain, **changes)


def test_words_about_a_source():
    assert str(quality()) == (
        "44.0 % of the labels of Ulm are wrong (38.0 % to 52.0 %), 4 times as often as those of the others: about 312 "
        "of 700; review them first, or leave them out"
    )
    assert str(quality(stands_out=False, others=0.4)) == (
        "44.0 % of the labels of Ulm are wrong (38.0 % to 52.0 %): about 312 of 700"
    )
    assert "more than 20 times as often" in str(quality(others=0.001))
    assert "more than 20 times as often" in str(quality(others=0.0))
    assert "times" not in str(quality(others=math.nan))
    assert str(quality(share_wrong=0.8, low=0.7, high=0.9)).endswith(
        "most of what it says is wrong: were its classes mixed up?"
    )
    assert "mixed up" not in str(quality(share_wrong=0.99, low=0.98, high=1.0, labels=1))
    in_one_class = (("no", 0.1, 0.05, 0.2), ("yes", 0.7, 0.6, 0.8))
    assert "about 312 of 700, most of all what is truly yes, 70.0 % (60.0 % to 80.0 %) of it; review them" in str(
        quality(class_shares=in_one_class)
    )
    assert "most of all" not in str(quality(class_shares=in_one_class, stands_out=False))


def test_a_source_is_compared_and_accused_from_a_limit_on():
    assert quality(share_wrong=0.3, others=0.2).times_as_often == pytest.approx(1.5)
    assert quality(others=0.0).times_as_often == math.inf
    assert quality(share_wrong=0.75, others=0.5, stands_out=False)._compare() == (
        ", 1.5 times as often as those of the others"
    )
    assert quality(share_wrong=0.74, others=0.5)._compare() == ""
    assert quality(share_wrong=0.75, others=0.25)._compare() == ", 3 times as often as those of the others"
    assert quality(share_wrong=1.0, others=0.05)._compare() == ", 20 times as often as those of the others"
    assert quality(share_wrong=1.0, others=0.049)._compare() == ", more than 20 times as often as those of the others"
    assert [quality(low=low, labels=labels).is_mostly_wrong for low, labels in ((0.51, 10), (0.5, 10), (0.51, 9))] == [
        True,
        False,
        False,
    ]
    shares = (("no", 0.1, 0.05, 0.2), ("yes", 0.7, 0.5, 0.8), ("so", 0.3, 0.2, 0.9))
    assert quality(class_shares=shares).worst_class == shares[1]
    assert [quality(class_shares=shares, high=high).errs_in_one_class for high in (0.49, 0.5)] == [True, False]
    assert not quality(class_shares=shares, high=0.49, stands_out=False).errs_in_one_class


def test_words_about_a_pair():
    pair = Disagreement("Ann", "Bob", 120, 0.4, 0.18, stands_out=True)
    assert str(pair) == "Ann and Bob disagree on 40.0 % of 120 items; their quality explains 18.0 %"
    assert "of 1 item;" in str(replace(pair, items=1))


def test_words_about_an_item(annotated):
    audit, _, _ = annotated
    one = audit.sources.judge_items()[0]
    name, label = one.votes[0]
    assert str(one).startswith(f"item 0000: {one.truth} ({one.probability:.0%} sure), from {label} by {name}, ")
    assert "by an unknown source" in str(replace(one, votes=((None, 1),)))


def test_only_some_of_many_bad_sources_are_told(monkeypatch, branches):
    audit, _ = branches
    monkeypatch.setattr("untwist.audit.verdict.MOST_NAMED", 1)
    monkeypatch.setattr("untwist.audit.audited_sources.rate_sources", lambda *_: [quality(name=name) for name in "abc"])
    verdict = find_verdict(audit)
    assert len(verdict.sources) == 2
    on_command_line = "--json lists them all"
    assert verdict.sources[1] == (
        "... and 2 more sources stand out: sources.rate() has them all",
        f"... and 2 more sources stand out: {on_command_line}",
    )
    in_words = verdict.describe(for_command=True, lists_rows=True)
    assert in_words == verdict.describe(lists_rows=True).replace("sources.rate() has them all", on_command_line)
    assert on_command_line in in_words
    assert sources.FALSE_DISCOVERY_RATE == 0.05


def test_a_row_of_weight_zero_is_absent_though_it_names_an_item():
    X, y, who, item, _ = draw_annotators(n_items=150)
    audit = audit_labels(X, y, source=who, item=item)
    extra = np.arange(0, len(y), 2)
    rows = np.concatenate([np.arange(len(y)), extra])
    labels = np.concatenate([y, 1 - y[extra]])
    weight = np.concatenate([np.ones(len(y)), np.zeros(len(extra))])
    model = UntwistClassifier(random_state=0).fit(
        X[rows], labels, sample_weight=weight, source=who[rows], item=item[rows]
    )
    other = audit_labels(X[rows], labels, model, source=who[rows], item=item[rows])
    np.testing.assert_allclose(other.posterior[: len(y)], audit.posterior, atol=1e-9)
    np.testing.assert_allclose(other.wrong[: len(y)], audit.wrong, atol=1e-9)
    np.testing.assert_allclose(other.truth[: len(y)], audit.truth, atol=1e-9)
    np.testing.assert_array_equal(other.context.item[: len(y)], item.astype(str))


def test_items_without_names_do_not_take_those_of_others():
    X, y, who, item, _ = draw_annotators(n_items=60)
    names = np.array([f"row {3 * i + 3}" for i in item], dtype=object)
    names[::6] = None
    model = UntwistClassifier(random_state=0).fit(X, y, source=who, item=names)
    audit = audit_labels(X, y, model, source=who, item=names)
    assert len(np.unique(audit.context.item)) == model.model_.out_of_fold.context.sources.n_items
    nameless = UntwistClassifier(random_state=0).fit(X, y, source=who, item=[None] * len(y))
    audit = audit_labels(X, y, nameless, source=who, item=[None] * len(y))
    np.testing.assert_array_equal(audit.context.item, np.arange(len(y)))


@pytest.mark.slow
def test_labels_of_unknown_sources_are_wrong_as_often_as_those_of_all():
    X, y, branch, wrong = draw_branches(seed=3)
    is_unknown = np.random.default_rng(0).random(len(y)) < 0.4
    audit = audit_labels(X, y, source=np.where(is_unknown, None, branch))
    assert audit.wrong[is_unknown].mean() == pytest.approx(wrong[is_unknown].mean(), rel=0.16)
