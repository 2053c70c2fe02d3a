"""Several classes: what is drawn, what is recorded of fits and audits, and what the standings make of it."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, log_loss, precision_score, recall_score

from experiments import datasets, peers, protocol, results
from experiments.benchmarks import several_classes_time
from experiments.datasets import Table, drop_rare_classes, is_pair_with_noise, list_several, load_several
from experiments.halves import DESIGN, JUDGING, find_half
from experiments.peers import PEERS, Contiguous, compute_log_loss, hold_out, predict_unseen, search, spread_columns
from experiments.several_classes import judging, methods, program
from experiments.several_classes.judging import Job, judge, list_jobs
from experiments.several_classes.methods import AUDITORS, GROUPS, OURS, PEER, Group, Labelling, Outcome
from experiments.several_classes.rows import Key, Row
from experiments.several_classes.sets import KINDS, load_set, split_twisted
from experiments.several_classes.standings import Standings, make_real_table, make_tables
from untwist import progress
from untwist.commands import main as cli

# Programs around the library: `make test-slow` runs their tests.
pytestmark = pytest.mark.slow

pd = pytest.importorskip("pandas", reason="the tables are pandas frames")


def make_table(rows=300, n_classes=4, seed=0, name="made"):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, rows)
    X = pd.DataFrame({"key": y + 0.3 * rng.normal(size=rows), "noise": rng.normal(size=rows)})
    X["text"] = pd.Categorical(np.where(y % 2, "odd", "even"))
    return Table(name, X, y.astype(np.int64), classes=tuple(f"class {index}" for index in range(n_classes)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with tables of several classes in its folder `multiclass`."""
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    there = tmp_path / "data" / "multiclass"
    there.mkdir(parents=True)
    for index, name in enumerate(["ants", "bees", "cats"]):
        table = make_table(200, seed=index)
        table.X.assign(label=[table.classes[label] for label in table.y]).to_csv(there / f"{name}.csv", index=False)
    table = make_table(150, seed=9)
    noisy = np.where(np.arange(150) % 5 == 0, (table.y + 1) % 4, table.y)
    table.X.assign(label=noisy).to_csv(there / "crowd_train_noisy.csv", index=False)
    table.X.assign(label=table.y).to_csv(there / "crowd_test_clean.csv", index=False)
    load_set.cache_clear()
    yield tmp_path / "data"
    load_set.cache_clear()


def run(*arguments):
    return cli.run_program(program.NAME, program.main, list(arguments))


# What is loaded and drawn


def test_tables_of_several_classes_from_a_folder(folder):
    assert list_several(folder) == list_several(folder / "multiclass") == ["ants", "bees", "cats", "crowd"]
    ants = load_several("ants", folder)
    assert ants.classes == ("class 0", "class 1", "class 2", "class 3")
    np.testing.assert_array_equal(ants.y, make_table(200).y)
    assert "label" not in ants.X
    assert str(ants.X["text"].dtype) == "category"
    crowd = load_several("crowd", folder)
    assert (crowd.y, crowd.classes) == (None, ("0", "1", "2", "3"))
    assert (crowd.y_noisy != crowd.y_test).mean() == 0.2
    assert [is_pair_with_noise(name, folder) for name in ("ants", "crowd", "owls")] == [False, True, False]
    with pytest.raises(ValueError, match=r"needs owls.csv in a folder of tables of several classes: there are ants, "):
        load_several("owls", folder)
    with pytest.raises(ValueError, match="name it, or set UNTWIST_DATA"):
        load_several("owls")
    assert list_several() == []
    (folder / "multiclass" / "gap.csv").write_text("n,label\n1,a\n2,\n")
    with pytest.raises(ValueError, match="label must not be missing in any row"):
        load_several("gap", folder)


def test_classes_are_sorted_by_number_where_all_are_numbers(tmp_path):
    (tmp_path / "numbers.csv").write_text("n,label\n1,10\n2,9\n3,-1\n")
    (tmp_path / "words.csv").write_text("n,label\n1,10\n2,9\n3,x\n")
    numbers, words = (load_several(name, tmp_path) for name in ("numbers", "words"))
    assert (numbers.classes, numbers.y.tolist()) == (("-1", "9", "10"), [2, 1, 0])
    assert (words.classes, words.y.tolist()) == (("10", "9", "x"), [0, 1, 2])


def test_rare_classes_are_dropped_and_named():
    y = np.repeat([0, 1, 2, 3], [9, 7, 8, 1])
    X = pd.DataFrame({"n": np.arange(25.0)})
    table = Table("made", X, y, None, X.iloc[[0, 10, 20]], y[[0, 10, 20]], classes=("a", "b", "c", "d"))
    smaller, dropped = drop_rare_classes(table, 8)
    assert dropped == {"b": 7, "d": 1}
    assert smaller.classes == ("a", "c")
    assert smaller.y.tolist() == [0] * 9 + [1] * 8
    assert smaller.X["n"].tolist() == [*range(9), *range(16, 24)]
    assert smaller.X.index.tolist() == list(range(17))
    assert (smaller.X_test["n"].tolist(), smaller.y_test.tolist()) == ([0.0, 20.0], [0, 1])
    same, dropped = drop_rare_classes(smaller, 8)
    assert same is smaller
    assert dropped == {}
    noisy = replace(table, y=None, y_noisy=y)
    assert drop_rare_classes(noisy, 8)[0].y_noisy.tolist() == [0] * 9 + [1] * 8


def test_halves_follow_from_the_names():
    names = "waveform_5000 vehicle page_blocks cmc splice yeast nursery soybean satimage pendigits car letter segment"
    halves = find_half(sorted(names.split()))
    assert [name for name in names.split() if halves[name] == DESIGN] == names.split()[:6]
    assert sorted(halves.values()) == [DESIGN] * 6 + [JUDGING] * 7


@pytest.mark.parametrize("kind", KINDS)
def test_training_labels_are_twisted_and_test_labels_are_not(kind):
    table = make_table(4000)
    part, truth = split_twisted(table, kind, 1, 2000)
    assert (len(part.X), len(part.X_test)) == (2000, 1200)
    assert np.mean(np.round(part.X_test["c0"]).clip(0, 3) == part.y_test) > 0.85
    assert np.mean(np.round(part.X["c0"]).clip(0, 3) == truth) > 0.85
    same = protocol.split(table, kind, 1, 2000)  # All that is drawn is what the arena draws.
    np.testing.assert_array_equal(part.y, same.y)
    np.testing.assert_array_equal(part.y_test, same.y_test)
    moved = part.y != truth
    matrix = np.array([[np.mean(part.y[truth == one] == other) for other in range(4)] for one in range(4)])
    if kind == "none":
        assert not moved.any()
    elif kind.startswith("symmetric"):
        assert moved.mean() == float(kind.split("-")[1])
        assert np.all(matrix > 0.03)
    elif kind.startswith("pair"):
        rate = float(kind.split("-")[1])
        assert moved.mean() == pytest.approx(rate, abs=0.03)
        np.testing.assert_array_equal(part.y[moved], (truth[moved] + 1) % 4)
    elif kind == "one-class-0.4":
        assert len(set(truth[moved])) == len(set(part.y[moved])) == 1
        assert moved[truth == truth[moved][0]].mean() == pytest.approx(0.4, abs=0.09)
    else:
        assert 0.02 < moved.mean() < 0.5
        assert np.ptp(np.diag(matrix)) > 0.05
    again, _ = split_twisted(table, kind, 1, 2000)
    np.testing.assert_array_equal(again.y, part.y)


def test_the_bad_class_and_the_matrix_change_from_split_to_split():
    y = np.arange(2000) % 5
    for twister in (protocol.AnyBadClass(0.4), protocol.AnyTransitions(0.5)):
        rows = [twister.twist(None, y, seed)[1] for seed in range(20)]
        pairs = {tuple(sorted(set(zip(y[one != y], one[one != y], strict=True)))) for one in rows}
        assert len(pairs) > 5


def test_twists_apply_to_two_classes_or_to_more():
    two, four = make_table(n_classes=2), make_table()
    for twist in protocol.SEVERAL_TWISTS:
        assert protocol.applies(twist, four)
        assert not protocol.applies(twist, two)
    assert protocol.applies("class-0.1-0.4", two)
    assert not protocol.applies("class-0.1-0.4", four)
    assert protocol.applies("symmetric-0.2", two)
    assert protocol.applies("symmetric-0.2", four)


# Peers


def test_the_log_loss_is_scikit_learns():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(4), 50)
    y = rng.integers(0, 4, 50)
    assert compute_log_loss(y, posterior) == pytest.approx(log_loss(y, posterior, labels=range(4)))
    sure = np.eye(4)[[0, 1]]
    assert compute_log_loss(np.array([0, 2]), sure) == pytest.approx(-np.log(1e-6) / 2, rel=1e-4)


def test_held_out_rows_leave_lonely_classes_to_training():
    X = pd.DataFrame({"n": np.arange(52.0)})
    y = np.array([0] * 30 + [1] * 18 + [2] * 2 + [3, 4])
    X_train, y_train, held = hold_out(X, y, 0)
    assert set(y_train) == {0, 1, 2, 3, 4}
    assert set(held.y) <= {0, 1, 2}
    assert len(held.y) == 10
    assert sorted([*X_train["n"], *held.X["n"]]) == list(range(52))
    np.testing.assert_array_equal(y[X_train["n"].astype(int)], y_train)
    np.testing.assert_array_equal(y[held.X["n"].astype(int)], held.y)
    plain = hold_out(X.iloc[:48], y[:48], 0)  # Where no class is alone, the draw is scikit-learn's.
    expected = peers.train_test_split(X.iloc[:48], y[:48], test_size=0.2, stratify=y[:48], random_state=0)
    pd.testing.assert_frame_equal(plain[0], expected[0])


def test_versions_are_found_and_a_checkout_needs_no_installation(monkeypatch):
    assert peers.find_version(["no-such-package", "scikit-learn"]).startswith("scikit-learn 1.")
    assert peers.find_version(["no-such-package"]) == ""
    monkeypatch.setattr(peers.importlib.metadata, "version", lambda name: 1 / 0)
    assert peers.find_version(["untwist"]) == f"untwist {peers.untwist.__version__}"


@pytest.fixture
def small(monkeypatch):
    """Peers with fewer trees, which learn the tables made here as well."""
    monkeypatch.setattr(peers, "ROUNDS", 60)
    monkeypatch.setattr(peers, "TREES", 30)


@pytest.mark.parametrize("name", PEERS)
def test_peers_search_and_predict_what_they_have_not_seen(name, small):
    peer = PEERS[name]
    if not peer.version:
        pytest.skip(f"{peer.packages[0]} is not installed")
    table = make_table(260)
    X = table.X.mask(np.random.default_rng(2).random(table.X.shape) < 0.02).astype({"text": table.X["text"].dtype})
    y = np.where(table.y == 3, 5, table.y)  # Labels with gaps, and a class with a single row.
    y[0] = 7
    with judging.work_alone():  # A peer's warnings are its own.
        model, settings = search(peer, X, y, 0)
        unseen = predict_unseen(peer, settings, X, y, 0, n_folds=3)
    assert settings.keys() == {**peer.candidates[0], **({peer.rounds: 1} if peer.rounds else {})}.keys()
    if peer.rounds:
        assert 1 <= settings[peer.rounds] <= 60
    posterior = peer.predict(model, X, 8)
    assert posterior.shape == (260, 8)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-5)
    assert (posterior[:, [3, 4, 6]] == 0).all()
    assert np.mean(posterior.argmax(axis=1) == y) > 0.9
    assert unseen.shape == (260, 8)
    assert np.mean(unseen.argmax(axis=1) == y) > 0.8
    assert unseen[0, 7] == 0  # Whoever predicts the row has never seen its class.


def test_a_search_takes_the_candidate_of_the_lowest_loss():
    table = make_table(200)
    seen = []

    class Model:
        def __init__(self, sure, y, held_out):
            self.sure, self.classes, self.stopped = sure, np.unique(y), held_out is not None

        def predict_proba(self, X):
            right = (np.round(X["key"]).clip(0, 3).astype(int).to_numpy()[:, None] == self.classes).astype(float)
            return self.sure * right + (1 - self.sure) / len(self.classes)

    def fit(X, y, held_out, seed, sure, rounds):
        seen.append((len(y), sure, rounds, held_out is not None, seed))
        return Model(sure, y, held_out)

    peer = peers.Peer(
        fit, ({"sure": 0.1}, {"sure": 0.9}, {"sure": 0.5}), (), "rounds", lambda model: int(100 * model.sure)
    )
    model, settings = search(peer, table.X, table.y, 3)
    assert settings == {"sure": 0.9, "rounds": 90}
    assert seen == [*((160, sure, 2000, True, 3) for sure in (0.1, 0.9, 0.5)), (200, 0.9, 90, False, 3)]
    assert not model.model_.stopped


def test_spread_columns_and_labels_with_gaps():
    np.testing.assert_array_equal(spread_columns([[0.25, 0.75]], [1, 3], 4), [[0, 0.25, 0, 0.75]])
    model = Contiguous(PEERS["extra-trees"], {"min_samples_leaf": 1}, 0)
    table = make_table(100)
    y = np.array([2, 5, 6, 9])[table.y]
    fitted = model.fit(table.X, y)
    assert fitted.classes_.tolist() == [2, 5, 6, 9]
    assert np.mean(fitted.predict(table.X) == y) == 1


# What is recorded


def knows_all(X, y, X_test, seed):
    """Says the truth of test rows from their key, and finds exactly the labels that differ from the key."""
    truth = np.round(X["c0"]).clip(0, y.max()).astype(int).to_numpy()
    test = np.round(X_test["c0"]).clip(0, y.max()).astype(int).to_numpy()
    posterior = 0.9 * np.eye(y.max() + 1)[test] + 0.1 / (y.max() + 1)
    labelling = Labelling((truth != y) + 0.0, truth != y, (0.25, 0.1, 0.4), 1.0)
    yield Outcome(OURS, posterior, labelling=labelling, seconds=1.0, noise_seconds=0.05)


def knows_little(X, y, X_test, seed):
    p = np.bincount(y, minlength=y.max() + 1) / len(y)
    yield Outcome(PEER, np.tile(p, (len(X_test), 1)), seconds=2.0)
    labelling = Labelling(
        np.arange(len(y)) + 0.0, np.arange(len(y)) % 4 == 0, (0.3, np.nan, np.nan), by_margin=-np.arange(len(y))
    )
    yield Outcome("cleanlab on xgboost", labelling=labelling, seconds=3.0)


@pytest.fixture
def fakes(monkeypatch):
    """Two groups in place of all others."""
    for name in list(GROUPS):
        monkeypatch.delitem(GROUPS, name)
    here = ("scikit-learn",)
    monkeypatch.setitem(GROUPS, "all", Group(knows_all, {OURS: here}))
    monkeypatch.setitem(GROUPS, "little", Group(knows_little, {PEER: here, "cleanlab on xgboost": here}))
    monkeypatch.setattr(judging, "_warm_up", lambda group: None)


def test_rows_are_what_scikit_learn_computes(folder, fakes):
    part, truth = split_twisted(load_set("ants", str(folder))[0], "pair-0.3", 1, 120)
    wrong = part.y != truth
    (ours,) = judge(Job("ants", "pair-0.3", 1, 120, "all"), str(folder))
    peer, audit = judge(Job("ants", "pair-0.3", 1, 120, "little"), str(folder))
    assert (ours.error, peer.error, audit.error) == ("", "", "")
    assert ours.key == Key("ants", "pair-0.3", 1, 120, OURS)
    assert (ours.n_classes, ours.n_rows, ours.seconds, ours.noise_seconds) == (4, 120, 1.0, 0.05)
    assert ours.version.startswith("scikit-learn ")
    suspect = np.round(part.X["c0"]).clip(0, 3).astype(int).to_numpy() != part.y
    right = np.round(part.X_test["c0"]).clip(0, 3).to_numpy() == part.y_test
    assert ours.accuracy == pytest.approx(right.mean())
    assert ours.log_loss == pytest.approx(-np.mean(np.log(np.where(right, 0.925, 0.025))))
    assert ours.average_precision == pytest.approx(average_precision_score(wrong, suspect))
    assert math.isnan(ours.by_margin)
    assert ours.precision == pytest.approx(precision_score(wrong, suspect))
    assert ours.recall == pytest.approx(recall_score(wrong, suspect))
    assert ours.f1 == pytest.approx(f1_score(wrong, suspect))
    assert (ours.flagged, ours.share_true) == pytest.approx((suspect.mean(), wrong.mean()))
    assert (ours.share_said, ours.share_low, ours.share_high, ours.found) == (0.25, 0.1, 0.4, 1.0)
    p = np.bincount(part.y) / 120
    assert peer.accuracy == pytest.approx(np.mean(part.y_test == p.argmax()))
    assert peer.log_loss == pytest.approx(-np.mean(np.log(p[part.y_test])))
    assert math.isnan(peer.share_said)
    assert math.isnan(audit.accuracy)
    assert audit.average_precision == pytest.approx(average_precision_score(wrong, np.arange(120)))
    assert audit.by_margin == pytest.approx(average_precision_score(wrong, -np.arange(120)))


def test_clean_and_real_rows_have_no_precision(folder, fakes):
    (clean,) = judge(Job("ants", "none", 0, 120, "all"), str(folder))
    assert (clean.share_true, clean.error) == (0.0, "")
    assert clean.flagged > 0
    assert math.isnan(clean.f1)
    (real,) = judge(Job("crowd", "real", 0, 120, "all"), str(folder))
    assert real.error == ""
    assert real.accuracy > 0.8
    assert math.isnan(real.share_true)


def test_training_code_meets_copies_and_twisted_labels_only(folder, fakes, monkeypatch):
    seen = []

    def spoil(X, y, X_test, seed):
        seen.append((y.copy(), seed))
        X.iloc[:, :] = np.nan
        y[:] = 0
        yield Outcome(OURS, np.full((len(X_test), 4), 0.25))

    monkeypatch.setitem(GROUPS, "all", Group(spoil, {OURS: ("scikit-learn",)}))
    (row,) = judge(Job("ants", "symmetric-0.4", 2, 120, "all"), str(folder))
    part, truth = split_twisted(load_set("ants", str(folder))[0], "symmetric-0.4", 2, 120)
    np.testing.assert_array_equal(seen[0][0], part.y)
    assert seen[0][1] == 2
    assert (part.y != truth).mean() == 0.4
    assert not part.X["c0"].isna().any()
    assert row.accuracy == np.mean(part.y_test == 0)


def test_a_class_without_labels_costs_and_does_not_break(folder, fakes, monkeypatch):
    table = make_table(200)
    monkeypatch.setattr(judging, "load_set", lambda data, folder: (table, {}))
    part, truth = split_twisted(table, "none", 0, 140)
    gone = protocol.Split(part.X, np.where(part.y == 1, 2, part.y), part.X_test, part.y_test)
    monkeypatch.setattr(judging, "split_twisted", lambda *_: (gone, truth))
    _, peer_row = [*judge(Job("made", "none", 0, 140, "all")), judge(Job("made", "none", 0, 140, "little"))[0]]
    assert peer_row.error == ""
    share = np.bincount(gone.y, minlength=4) / 140
    clipped = np.maximum(share, 1e-6) / np.maximum(share, 1e-6).sum()
    assert peer_row.log_loss == pytest.approx(-np.mean(np.log(clipped[part.y_test])))
    assert peer_row.n_classes == 4


def test_errors_are_rows_and_what_came_before_them_counts(folder, fakes, monkeypatch):
    def fail(X, y, X_test, seed):
        yield Outcome(PEER, np.full((len(X_test), 4), 0.25))
        raise RuntimeError("no\nluck")

    packages = {PEER: ("scikit-learn",), "cleanlab": ("scikit-learn",), "cleanlab on xgboost": ("no-such-package",)}
    monkeypatch.setitem(GROUPS, "little", Group(fail, packages))
    first, second = judge(Job("ants", "none", 0, 120, "little"), str(folder))
    assert (first.method, first.error) == (PEER, "")
    assert (second.method, second.error) == ("cleanlab", "RuntimeError: no luck")
    monkeypatch.setitem(
        GROUPS, "little", Group(lambda *_: iter([Outcome(PEER, np.full((60, 4), np.nan))]), {PEER: ("scikit-learn",)})
    )
    (row,) = judge(Job("ants", "none", 0, 120, "little"), str(folder))
    assert "no probability" in row.error


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_judges_a_table_with_categories_and_gaps(group, small):
    installed = GROUPS[group].installed
    if len(installed) < len(GROUPS[group].packages):
        pytest.skip(f"{group} is not installed, or not all of it")
    table = make_table(400, n_classes=3)
    X = table.X.mask(np.random.default_rng(2).random(table.X.shape) < 0.02).astype({"text": table.X["text"].dtype})
    part, truth = split_twisted(replace(table, X=X), "pair-0.1", 0, 280)
    judging._warm_up(group)
    with judging.work_alone():
        outcomes = list(GROUPS[group].judge(part.X, part.y, part.X_test, 0))
    assert [one.method for one in outcomes] == list(GROUPS[group].packages)
    for one in outcomes:
        assert one.seconds >= 0
        assert (one.posterior is None) == (one.method in AUDITORS)
        if one.posterior is not None:
            assert np.mean(one.posterior.argmax(axis=1) == part.y_test) > 0.8
            np.testing.assert_allclose(one.posterior.sum(axis=1), 1, atol=1e-5)
        if one.labelling is not None:
            assert average_precision_score(part.y != truth, one.labelling.suspicion) > 0.4
            assert 0 <= one.labelling.share[0] < 0.5
            assert one.labelling.flagged.dtype == bool


def test_the_ranking_of_ours_is_that_of_the_audit():
    table = make_table(250, n_classes=3)
    part, _ = split_twisted(table, "symmetric-0.2", 0, 175)
    outcome = next(iter(methods._judge_untwist(part.X, part.y, part.X_test, 0)))
    audit = methods.audit_labels(part.X, part.y, n_jobs=1, random_state=0)
    assert np.argsort(-outcome.labelling.suspicion).tolist() == audit.ranking.tolist()
    assert np.flatnonzero(outcome.labelling.flagged).tolist() == sorted(audit.suspects())
    assert outcome.labelling.share == audit.noise_rate


# What the standings make of it


def make_rows(accuracy, method=OURS, kind="pair-0.3", data="ants", **values):
    return [Row(data, kind, split, 100, method, accuracy=one, **values) for split, one in enumerate(accuracy)]


def find(tables, part):
    (table,) = [one for one in tables if part in one.title]
    return table


def test_cells_that_are_lost_come_first():
    rows = [
        *make_rows([0.70, 0.72]),
        *make_rows([0.75, 0.73], PEER),  # .03 below in the mean
        *make_rows([0.80, 0.80], data="bees"),
        *make_rows([0.82, 0.82], PEER, data="bees"),  # .02 below, which is allowed
        *make_rows([0.50], kind="none"),
        *make_rows([0.40], PEER, kind="none"),
    ]
    tables = make_tables(Standings(rows), "judging")
    assert tables[0].title == "judging: losing cells, 1 of 3"
    assert tables[0].lines == [["ants", "pair-0.3", "0.710", "0.740", "-0.030"]]
    aims = {line[0]: line[1:] for line in find(tables, "aims").lines}
    assert aims["nowhere more than 0.02 below xgboost"] == ["-0.030 at worst", "missed"]
    assert aims["accuracy ahead of every peer in the mean"] == ["1 of 2 kinds", "missed"]
    none_lost = make_tables(Standings([row for row in rows if row.kind == "none"]), "design")
    assert none_lost[0].title == "design: losing cells, none of 1"
    assert len(none_lost[0].lines) == 1


def test_kinds_are_compared_with_the_best_peer():
    rows = [
        *make_rows([0.8], log_loss=0.5, average_precision=0.60, f1=0.5),
        *make_rows([0.7], PEER, log_loss=0.6),
        *make_rows([0.81], "extra-trees", log_loss=0.7),
        *make_rows([math.nan], "cleanlab on xgboost", average_precision=0.5, by_margin=0.61, f1=0.4),
        *make_rows([math.nan], "cleanlab on untwist", average_precision=0.55, by_margin=0.2, f1=0.49),
    ]
    tables = make_tables(Standings(rows), "design")
    behind = find(tables, "where ours is behind")
    assert behind.title.endswith("2 of 4")
    assert behind.lines == [
        ["accuracy", "pair-0.3", "0.8000", "extra-trees", "0.8100", "-0.0100"],
        ["average precision", "pair-0.3", "0.6000", "cleanlab on xgboost", "0.6100", "-0.0100"],
    ]
    shown = find(tables, "average precision of the ranking")
    assert {line[0]: line[1] for line in shown.lines} == {
        OURS: "0.600",
        "cleanlab on xgboost": "0.610",
        "cleanlab on untwist": "0.550",
    }


def test_aims_of_the_estimate_and_of_time():
    def both(ours):
        peer = [replace(row, method=PEER, seconds=2.0, noise_seconds=math.nan) for row in ours]
        return {line[0]: line[1:] for line in find(make_tables(Standings([*ours, *peer]), "x"), "aims").lines}

    shares = [(0.10, 0.05, 0.2), (0.31, 0.25, 0.4), (0.20, 0.25, 0.3)]
    rows = [
        Row("ants", "pair-0.3", split, 100, OURS, accuracy=0.5, log_loss=1.0, seconds=3.0, noise_seconds=0.2)
        for split in range(3)
    ]
    rows = [
        replace(row, share_said=said, share_low=low, share_high=high, share_true=0.3)
        for row, (said, low, high) in zip(rows, shares, strict=True)
    ]
    rows.append(
        replace(rows[0], kind="none", share_said=0.0, share_low=0.0, share_high=0.01, share_true=0.0, flagged=0.02)
    )
    aims = both(rows)
    assert aims["share of wrong labels within 0.02 in the median"] == ["0.100", "missed"]
    assert aims["95 % intervals cover 90% of the time"] == ["75.0%", "missed"]
    assert aims["at most 1% flagged in clean data"] == ["2.00%", "missed"]
    assert aims["as fast as xgboost with its search"] == ["1.50 times", "missed"]
    assert aims["the noise in at most 10% of the fit"] == ["6.7%", "met"]


def test_only_runs_that_all_have_finished_count_and_failures_are_shown():
    rows = [
        *make_rows([0.9, 0.1]),
        *make_rows([0.8], PEER),
        Row("ants", "pair-0.3", 1, 100, PEER, error="no luck"),
    ]
    standings = Standings(rows)
    assert list(standings.runs) == [("ants", "pair-0.3", 0)]
    assert standings.incomplete == 1
    tables = make_tables(standings, "design")
    assert [line[1] for line in find(tables, "design: accuracy").lines] == ["0.900", "0.800"]
    assert find(tables, "failures").lines == [[PEER, "ants", "pair-0.3", "1", "no luck"]]
    assert [one.title for one in make_tables(Standings(rows[-1:]), "x")] == ["failures, 1"]


def test_real_noise_has_a_table_of_its_own():
    rows = [
        Row("crowd", "real", split, 100, method, accuracy=accuracy + 0.02 * split, share_said=said)
        for split, (method, accuracy, said) in itertools.product(range(2), [(PEER, 0.5, math.nan), (OURS, 0.6, 0.2)])
    ]
    assert Standings(rows).runs == {}
    (table,) = make_real_table([*rows, *make_rows([0.1])])
    assert table.title == "real noise: crowd"
    assert [line[:4] for line in table.lines] == [[OURS, "0.610", "-", "0.200"], [PEER, "0.510", "-", "-"]]


# The command line


@pytest.mark.slow
def test_the_command_runs_what_is_missing_and_shows(folder, fakes, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    out = tmp_path / "rows.csv"
    options = ["--data", str(folder), "--splits", "2", "--rows", "100", "--jobs", "1", "--out", str(out)]
    assert run(*options, "--kinds", "none", "pair-0.3") == 0
    output = capsys.readouterr()
    halves = find_half(["ants", "bees", "cats"])
    for half in (DESIGN, JUDGING):
        names = ", ".join(name for name in halves if halves[name] == half)
        assert f"The {half} half: {names}." in output.out
        assert f"{half}: losing cells, none of" in output.out
    assert output.out.index("judging: losing cells") < output.out.index("design: losing cells")
    assert "real noise" not in output.out
    rows = results.read(out, Row)
    assert len(rows) == 3 * 2 * 2 * 3  # sets, kinds, splits, methods
    assert "# Several classes" in out.with_suffix(".md").read_text()
    before = out.read_text()
    assert run(*options) == 0  # All kinds now; what is done is not done again.
    assert out.read_text().startswith(before)
    assert "real noise: crowd" in capsys.readouterr().out
    assert len(results.read(out, Row)) == 3 * 7 * 2 * 3 + 2 * 3
    size = len(out.read_text().splitlines())
    assert run(*options, "--again", "all", "--sets", "ants", "--half", halves["ants"]) == 0
    assert len(out.read_text().splitlines()) == size + 7 * 2
    assert run(*options, "--show") == 0
    assert run(*options, "--minutes", "-1", "--again", "all") == 0
    assert "jobs are left: the same command goes on from there" in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == size + 7 * 2


def test_quick_takes_two_sets_that_the_design_knows(folder, fakes, tmp_path, capsys):
    for index in range(5):  # Of eight sets, four are there to design by.
        table = make_table(200, seed=index)
        table.X.assign(label=table.y).to_csv(folder / "multiclass" / f"more{index}.csv", index=False)
    assert run("--quick", "--data", str(folder), "--jobs", "1", "--out", str(tmp_path / "rows.csv")) == 0
    halves = find_half(["ants", "bees", "cats", *(f"more{index}" for index in range(5))])
    seen = {row.data for row in results.read(tmp_path / "rows.csv", Row)}
    assert len(seen) == 2
    assert {halves[name] for name in seen} == {DESIGN}
    assert "judging: losing" not in capsys.readouterr().out


def test_what_is_missing_or_wrong_is_said_in_a_line(folder, fakes, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run() == 0
    assert "No data sets of several classes" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run("--data", "empty") == 0
    assert "empty has none" in capsys.readouterr().err
    for options, status, words in [
        (["--data", "nowhere"], 1, "data folder nowhere does not exist"),
        (["--data", str(folder), "--sets", "owls"], 2, "unknown data set 'owls': choose from ants"),
        (["--data", str(folder), "--kinds", "x"], 2, "unknown kind 'x'"),
        (["--data", str(folder), "--groups", "x"], 2, "unknown group 'x'"),
        (["--data", str(folder), "--rows", "3"], 2, "--rows at least 60"),
        (["--data", str(folder), "--show", "--out", "none.csv"], 1, "no run yet that every method has finished"),
    ]:
        try:
            got = run(*options)
        except SystemExit as stop:
            got = stop.code
        assert got == status
        assert words in capsys.readouterr().err
    monkeypatch.setitem(GROUPS, "more", Group(knows_all, {"catboost": ("no-such-package",)}))
    table = make_table(60, n_classes=2)
    table.X.assign(label=table.y).to_csv(folder / "multiclass" / "two.csv", index=False)
    rare = make_table(200)
    rare.X.assign(label=np.where(np.arange(200) < 5, 9, rare.y)).to_csv(folder / "multiclass" / "rare.csv", index=False)
    options = ["--data", str(folder), "--splits", "1", "--jobs", "1", "--kinds", "none", "--out", "rows.csv"]
    assert run(*options, "--sets", "rare", "two") == 0
    said = capsys.readouterr().err
    assert "catboost is left out: pip install no-such-package brings it." in said
    assert "two is left out: it has 2 classes" in said
    assert "rare: classes with fewer than 8 rows are dropped: 9 (5)." in said
    assert {row.data for row in results.read(tmp_path / "rows.csv", Row)} == {"rare"}


def test_jobs_come_split_by_split():
    jobs = list_jobs({"ants": ["none"], "bees": ["none", "pair-0.1"]}, ["untwist"], 2, 100)
    assert [job[:3] for job in jobs] == [
        (data, kind, seed)
        for seed in range(2)
        for data, kind in [("ants", "none"), ("bees", "none"), ("bees", "pair-0.1")]
    ]


@pytest.mark.slow
def test_processes_give_the_same_rows(folder, tmp_path):
    options = ["--data", str(folder), "--sets", "ants", "--kinds", "pair-0.3", "--splits", "1", "--rows", "100"]
    for jobs in ("1", "2"):
        groups = ["untwist", "extra-trees"]
        assert run(*options, "--groups", *groups, "--jobs", jobs, "--out", str(tmp_path / f"{jobs}.csv")) == 0
    one, two = (
        sorted(
            (replace(row, seconds=0, noise_seconds=0) for row in results.read(tmp_path / f"{jobs}.csv", Row)),
            key=lambda row: row.method,
        )
        for jobs in ("1", "2")
    )
    assert str(one) == str(two)  # NaN differs from itself.
    assert not any(row.error for row in one)


# What it costs


def test_the_benchmark_of_time_keeps_the_better_turn(tmp_path, capsys, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(several_classes_time, "SHAPES", [(300, 15), (400, 16)])
    monkeypatch.setattr(several_classes_time, "TEST_ROWS", 90)
    several_classes_time.main(["--classes", "3", "--rows", "300", "--threads", "1", "--turns", "1"])
    assert "300 x 15" in capsys.readouterr().out
    lines = (tmp_path / "results" / "several_classes_time.csv").read_text().splitlines()
    assert [line.split(",")[:5] for line in lines[1:]] == [["3", "300", "15", "1", name] for name in ("untwist", PEER)]
    assert all(float(line.split(",")[7]) > 0.6 for line in lines[1:])
    turns = iter([3.0, 2.0, 1.0, 5.0])
    for name in (OURS, PEER):
        fake = lambda *_: several_classes_time.Timing(next(turns), 1.0, 0.5, 0.7)  # noqa: E731
        monkeypatch.setitem(several_classes_time.METHODS, name, fake)
    best = several_classes_time.measure(3, 300, 15, threads=1, turns=2)
    assert {name: timing.seconds for name, timing in best.items()} == {OURS: 1.0, PEER: 2.0}


def test_the_benchmark_twists_a_fifth_of_the_training_labels(monkeypatch):
    X, y, X_test, y_test = several_classes_time.draw_table(10, 3000, 16)
    assert (X.shape, len(y), len(y_test), X_test.dtype) == ((3000, 16), 3000, 5000, np.float32)
    clean = several_classes_time.BernoulliNoise(0.0)
    monkeypatch.setattr(several_classes_time, "BernoulliNoise", lambda rate: clean)
    truth = several_classes_time.draw_table(10, 3000, 16)[1]
    assert np.mean(truth != y) == pytest.approx(0.2, abs=0.03)
