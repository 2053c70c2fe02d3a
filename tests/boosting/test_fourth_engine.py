"""A fourth engine in one file: randomised trees in NumPy, registered here, with no edit anywhere in the package."""

import numpy as np
import pytest

from helpers.quick import make_classifier
from untwist import PILBoostClassifier, UntwistClassifier, load, save
from untwist.audit import audit_labels
from untwist.boosting.engines import registry
from untwist.boosting.engines.engine import Engine
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest
from untwist.data.encoding import AcceptedTables
from untwist.explain import explain


class RandomTreeEngine(Engine):
    """Trees that split at thresholds drawn at random."""

    name = "random trees"
    known_settings = frozenset({"l2"})

    def accepted_tables(self, estimator, tree_method):
        return AcceptedTables(missing_values=False, sparse=False, categories=False, blocks=False)

    def make_dataset(self, rows, settings):
        return RandomTreeDataset(rows)

    def make_booster(self, dataset, task):
        return RandomTreeBooster(dataset, task)


class RandomTreeDataset:
    def __init__(self, rows):
        self.rows = rows

    def hashes(self):
        return np.array([hash(row.tobytes()) & (2**64 - 1) for row in np.asarray(self.rows.X)], dtype=np.uint64)


class RandomTreeBooster:
    def __init__(self, dataset, task):
        self.X = np.asarray(dataset.rows.X, dtype=np.float64)
        self.sign = np.where(dataset.rows.labels == task.positive_class, 1.0, -1.0)
        self.weight = np.ones(len(self.sign)) if task.weight is None else task.weight
        self.task = task
        self.scores = np.zeros(len(self.sign)) if task.start is None else task.start.copy()
        self.rng = np.random.default_rng([task.growth.seed, task.stream, task.first_round])
        self.trees, self.leverages, self.edge_list, self.loss_list, self.error_list = [], [], [], [], []

    def boost(self, rounds, patience=0):
        for _ in range(rounds):
            if patience and self.loss_list and len(self.loss_list) - np.argmin(self.loss_list) > patience:
                break
            weight = self.weight * self.task.link.weights(self.sign * self.scores)
            if not weight.any():
                break
            tree, h = self.grow(weight)
            edge = float((weight * self.sign * h).sum() / self.weight.sum())
            leverage = self.task.step_size * (edge if self.task.by_edge else 1.0)
            self.scores = self.scores + leverage * h
            self.trees.append(tree)
            self.leverages.append(leverage)
            self.edge_list.append(edge)
            self.validate()
        return len(self.trees)

    def grow(self, weight):
        """One split at random for each node of a level; a leaf is the weighted mean label, drawn towards 0."""
        nodes = [{"rows": np.arange(len(self.sign)), "depth": 0}]
        h = np.zeros(len(self.sign))
        for node in nodes:
            rows = node["rows"]
            column = int(self.rng.integers(self.X.shape[1]))
            threshold = float(self.rng.choice(self.X[rows, column])) if len(rows) else 0.0
            left = self.X[rows, column] <= threshold
            if node["depth"] < self.task.growth.depth and left.any() and not left.all():
                node |= {"feature": column, "threshold": threshold, "left": len(nodes), "value": 0.0}
                nodes += [{"rows": rows[side], "depth": node["depth"] + 1} for side in (left, ~left)]
            else:
                total = weight[rows].sum() + self.task.growth.l2
                value = float((weight * self.sign)[rows].sum() / total) if total else 0.0
                node |= {"feature": -1, "threshold": 0.0, "left": -1, "value": value}
                h[rows] = value
        return nodes, h

    def validate(self):
        if self.task.validation_weight is None:
            return
        floor, share = self.task.posterior_floor, self.task.validation_weight / self.task.validation_weight.sum()
        posterior = np.clip(self.task.link.weights(-self.sign * self.scores), floor, 1.0 - floor)
        self.loss_list.append(float(share @ -np.log(posterior)))
        self.error_list.append(float(share @ (self.sign * self.scores <= 0)))

    def last_edge(self):
        return self.edge_list[-1]

    def losses(self):
        return np.array(self.loss_list)

    def errors(self):
        return np.array(self.error_list)

    def ensemble(self):
        def column(name, dtype):
            return np.array([node[name] for tree in self.trees for node in tree], dtype=dtype)

        values = [
            lever * node["value"] for tree, lever in zip(self.trees, self.leverages, strict=True) for node in tree
        ]
        n_nodes = sum(map(len, self.trees))
        forest = Forest(
            edge=np.array(self.edge_list),
            leverage=np.array(self.leverages),
            offset=np.cumsum([0, *map(len, self.trees)]),
            feature=column("feature", np.int32),
            left=column("left", np.int32),
            threshold=column("threshold", np.float64),
            missing_left=np.ones(n_nodes, dtype=np.uint8),
            value=np.array(values),
            gain=np.ones(n_nodes),
            set=np.full(n_nodes, -1, dtype=np.int32),
            codes=np.zeros(0, dtype=np.uint64),
            n_features=self.X.shape[1],
        )
        return Ensemble.from_forest(forest, self.losses(), self.errors())


@pytest.fixture(autouse=True)
def fourth_engine():
    registry.register(RandomTreeEngine())
    yield
    del registry.ENGINES[RandomTreeEngine.name]


@pytest.fixture(scope="module")
def flipped():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    truth = (X[:, 0] + X[:, 1] > 0).astype(int)
    wrong = rng.random(600) < 0.15
    return X, np.where(wrong, 1 - truth, truth), truth, wrong


def test_it_fits_and_predicts_with_given_settings(flipped):
    X, y, truth, _ = flipped
    model = PILBoostClassifier(alpha=2.0, n_estimators=150, max_depth=4, engine="random trees", random_state=0).fit(
        X, y
    )
    assert (model.predict(X) == truth).mean() > 0.85
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert len(model.edges_) == 150


def test_it_stops_early_and_warm_starts(flipped):
    X, y, *_ = flipped
    settings = {"max_depth": 4, "learning_rate": 0.3, "engine": "random trees", "random_state": 0}
    stopped = make_classifier(alpha=2.0, n_estimators=400, early_stopping=True, **settings).fit(X, y)
    assert 0 < stopped.n_iter_ < 400
    assert len(stopped.validation_rows_) > 0
    model = make_classifier(alpha=2.0, n_estimators=20, warm_start=True, **settings).fit(X, y)
    first = model.edges_.copy()
    model.set_params(n_estimators=50).fit(X, y)
    assert np.array_equal(model.edges_[:20], first)
    assert len(model.edges_) == 50


@pytest.mark.slow
def test_it_chooses_by_folds_estimates_noise_and_audits(flipped):
    X, y, truth, wrong = flipped
    model = UntwistClassifier(engine="random trees", random_state=0).fit(X, y)
    assert (model.predict(X) == truth).mean() > 0.9
    audit = audit_labels(X, y, model)
    suspects = audit.suspects(budget=60)
    assert wrong[suspects].mean() > 0.6
    assert 0 < audit.noise_rate[0] < 0.4


def test_it_is_explained_saved_and_loaded(flipped, tmp_path):
    X, y, *_ = flipped
    model = PILBoostClassifier(alpha=2.0, n_estimators=30, max_depth=3, engine="random trees", random_state=0).fit(X, y)
    contributions = explain(model, X[:20])
    assert np.allclose(contributions.scores, model.decision_function(X[:20]))
    assert set(np.argsort(-np.abs(contributions.values).mean(axis=0))[:2]) == {0, 1}
    save(model, tmp_path / "random.untwist")
    assert np.array_equal(load(tmp_path / "random.untwist").decision_function(X), model.decision_function(X))


def test_it_refuses_settings_that_it_does_not_know(flipped):
    X, y, *_ = flipped
    with pytest.raises(ValueError, match="max_bins=16 needs engine="):
        PILBoostClassifier(alpha=2.0, n_estimators=5, max_depth=2, max_bins=16, engine="random trees").fit(X, y)


def test_it_refuses_tables_that_it_does_not_take(flipped):
    X, y, *_ = flipped
    model = PILBoostClassifier(alpha=2.0, n_estimators=5, max_depth=2, engine="random trees")
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2.0, np.nan, X), y)
    with pytest.raises(ValueError, match="hold some: encode them"):
        model.fit(np.where(X > 0.0, "high", "low"), y)


def test_an_unknown_engine_is_refused_with_the_names_of_those_there_are(flipped):
    X, y, *_ = flipped
    with pytest.raises(ValueError, match=r'"random trees", which grow forests, got .none.'):
        UntwistClassifier(engine="none").fit(X, y)
