"""What holds of every model, whatever the data: properties of the classifier, tried on data made to break them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from helpers.quick import QuickClassifier, make_classifier
from helpers.small_fits import list_forests
from helpers.strategies import any_settings, given_settings, holds, samples, several, tables, weights
from untwist import PILBoostClassifier, UntwistClassifier, explain, export
from untwist.audit import audit_labels
from untwist.boosting.forest import Forest
from untwist.files import dumps, load, loads, save

# Rows that are made to break things may well repeat each other.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*near-duplicates in other folds:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*nothing but the shares of the classes:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*holds no category that it held when fitted:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*Booleans now, and held numbers when fitted:UserWarning"),
]

FOREST = [name for name in Forest.__dataclass_fields__ if name != "n_features"]


def fit(sample, settings, weight=None):
    return make_classifier(**settings).fit(sample.X, sample.y, weight)


def assert_same_trees(one, other, but=(), rtol_of_values=0.0):
    for a, b in zip(list_forests(one), list_forests(other), strict=True):
        for name in FOREST:
            if name not in but:
                rtol = rtol_of_values if name == "value" else 0.0
                np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, err_msg=name)


def assert_same(one, other, X, X_of_other=None, rtol=0.0):
    """Bit for bit what both say of the rows, unless a tolerance is given."""
    X_of_other = X if X_of_other is None else X_of_other
    for name in ("decision_function", "predict_proba", "predict_proba_twisted"):
        said, said_by_other = getattr(one, name)(X), getattr(other, name)(X_of_other)
        np.testing.assert_allclose(said, said_by_other, rtol=rtol, atol=rtol, err_msg=name)
    if not rtol:
        np.testing.assert_array_equal(one.predict(X), other.predict(X_of_other))


def assert_probabilities(proba, shape):
    assert proba.shape == shape
    assert np.isfinite(proba).all()
    assert ((proba >= 0) & (proba <= 1)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def assert_sound(model, X):
    """Probabilities are some, and all ways to ask agree."""
    shape = len(X), len(model.classes_)
    proba, scores = model.predict_proba(X), model.decision_function(X)
    assert np.isfinite(scores).all()
    assert_probabilities(proba, shape)
    assert_probabilities(model.predict_proba_twisted(X), shape)
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype
    place = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(predicted, model.classes_[place])
    if shape[1] == 2:
        np.testing.assert_array_equal(proba[:, 1] > 0.5, (scores > 0) & (proba[:, 1] != 0.5))
    else:
        assert (proba[np.arange(len(X)), place] >= proba.max(axis=1) - 1e-12).all()
    fitted = model.model_
    rows = fitted.encoder.encode(X)
    *_, last = fitted.staged_scores(rows)
    np.testing.assert_allclose(fitted.posterior.decision(last), scores, rtol=1e-9, atol=1e-9)
    weight = fitted.link.weights(fitted.margins(fitted.scores(rows), np.zeros(len(X), dtype=int)))
    assert ((weight >= 0) & (weight <= 1)).all()
    for kind in ("paper", "gain", "splits"):
        shares = model.importances(kind)
        assert ((shares >= 0) & np.isfinite(shares)).all()
        assert shares.sum() == pytest.approx(1.0) or not shares.any()


# ---- soundness: whatever comes, the numbers are numbers ----


@holds(40, sample=tables, settings=any_settings, weigh=st.none() | weights())
def test_two_classes_of_any_data_give_probabilities(sample, settings, weigh):
    model = fit(sample, settings, None if weigh is None else weigh(sample))
    assert_sound(model, sample.X)
    beyond = np.where(sample.rng.random(sample.X.shape) < 0.5, sample.X, 1.7e308 * sample.rng.choice([-1, 1]))
    assert_sound(model, beyond)


@holds(12, sample=samples(classes=(3, 50), rows=(6, 120)), settings=given_settings, weigh=st.none() | weights())
def test_up_to_50_classes_give_probabilities(sample, settings, weigh):
    weight = None if weigh is None else weigh(sample)
    # So many different numbers would look like the target of a regression.
    assert_sound(make_classifier(**settings).fit(sample.X, sample.y.astype(str), weight), sample.X)


@holds(5, sample=several, settings=st.fixed_dictionaries({"n_estimators": st.integers(1, 8), "n_jobs": st.just(1)}))
def test_several_classes_with_settings_left_open_give_probabilities(sample, settings):
    model = fit(sample, {"random_state": 0, **settings})
    assert_sound(model, sample.X)
    assert_probabilities(model.oof_proba_, (len(sample.y), len(model.classes_)))


@holds(10, sample=samples(rows=(20, 60)), settings=given_settings, patience=st.integers(1, 4))
def test_a_fit_that_stops_early_keeps_the_rounds_up_to_the_best(sample, settings, patience):
    assume(np.bincount(sample.y).min() > 1)
    settings = settings | {"early_stopping": patience, "n_estimators": 15}
    model = fit(sample, settings)
    losses = model.evals_result_["validation"]["log_loss"]
    assert np.isfinite(losses).all()
    assert model.n_iter_ == np.argmin(losses) + 1
    assert len(losses) <= model.n_iter_ + patience
    assert_sound(model, sample.X)


@holds(6, sample=samples(kinds=["usual", "few values", "ties", "zeros of both signs", "gaps"]), depth=st.integers(1, 3),
       alpha=st.sampled_from([1.0, -2.0]), link=st.sampled_from(["clipped", "exact"]))  # fmt: skip
def test_the_reference_engine_gives_probabilities_too(sample, alpha, link, depth):
    settings = {"alpha": alpha, "link": link, "max_depth": depth, "n_estimators": 4, "engine": "reference"}
    model = fit(sample, settings | {"random_state": 0})
    shape = len(sample.y), 2
    assert_probabilities(model.predict_proba(sample.X), shape)
    np.testing.assert_array_equal(model.predict(sample.X), model.classes_[(model.decision_function(sample.X) > 0) * 1])
    assert_same(model, fit(sample, settings | {"random_state": 0}), sample.X)


@holds(8, sample=tables, settings=any_settings, value=st.sampled_from([np.inf, -np.inf]), data=st.data())
def test_infinities_are_refused_by_name_in_training_and_later(sample, settings, value, data):
    spoilt = sample.X.copy()
    row, column = data.draw(st.integers(0, len(spoilt) - 1)), data.draw(st.integers(0, spoilt.shape[1] - 1))
    spoilt[row, column] = value
    with pytest.raises(ValueError, match=rf"X contains infinity: column {column} in row {row}: replace"):
        make_classifier(**settings).fit(spoilt, sample.y)
    model = fit(sample, settings)
    asks = [model.predict, model.predict_proba, model.decision_function, model.predict_proba_twisted]
    for ask in [*asks, model.apply] if isinstance(model, PILBoostClassifier) else asks:
        with pytest.raises(ValueError, match=rf"X contains infinity: column {column} in row {row}: replace"):
            ask(spoilt)


@holds(6, sample=tables, settings=given_settings, weight=st.sampled_from([np.inf, -np.inf, np.nan, -1.0, -1e-300]))
def test_weights_that_are_none_are_refused_by_name(sample, settings, weight):
    sample_weight = np.ones(len(sample.y))
    sample_weight[sample.rng.integers(len(sample_weight))] = weight
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        fit(sample, settings, sample_weight)
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        fit(sample, settings, np.zeros(len(sample_weight)))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (5, 0), (1, 3)])
def test_tables_without_enough_rows_or_columns_are_refused(shape):
    X, y = np.zeros(shape), np.arange(shape[0]) % 2
    for settings in ({}, {"alpha": 2.0, "n_estimators": 2, "max_depth": 2}, {"engine": "reference"}):
        with pytest.raises(ValueError, match=r"sample|feature|class"):
            make_classifier(**settings).fit(X, y)
    model = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1).fit(np.eye(3), [0, 1, 0])
    if shape != (1, 3):
        with pytest.raises(ValueError, match=r"sample|feature"):
            model.predict(X)


# ---- what the trees may not depend on ----


def stretch(column, rng):
    """The column with other values in the same order, at any scale."""
    values, place = np.unique(column[~np.isnan(column)], return_inverse=True)
    steps = rng.integers(1, 1000, len(values)).cumsum() - 500.0
    out = column.copy()
    out[~np.isnan(column)] = (steps * 10.0 ** rng.integers(-290, 290))[place]
    return out


@holds(30, sample=tables, settings=any_settings, weigh=st.none() | weights())
def test_monotone_transforms_of_columns_do_not_change_the_trees(sample, settings, weigh):
    weight = None if weigh is None else weigh(sample)
    other = np.column_stack([stretch(column, sample.rng) for column in sample.X.T])
    model, moved = fit(sample, settings, weight), make_classifier(**settings).fit(other, sample.y, weight)
    # Between the values that it has seen, a model may cut anywhere; weights are scaled, and the smallest become 0.
    seen = np.ones(len(sample.y), dtype=bool) if weight is None else weight > 1e-280 * weight.max()
    # A row without weight falls to one of its neighbours, and so may be a copy of another row: folds round by copies.
    assert_same_trees(model, moved, but=("threshold",), rtol_of_values=0.0 if seen.all() else 1e-12)
    noise_from_all_rows = 1e-9 if hasattr(model, "choice_") else 0.0
    assert_same(model, moved, sample.X[seen], other[seen], rtol=noise_from_all_rows)


@holds(30, sample=samples(classes=(2, 5)), settings=any_settings, weigh=st.none() | weights())
def test_the_order_of_the_rows_does_not_matter(sample, settings, weigh):
    weight, order = None if weigh is None else weigh(sample), sample.rng.permutation(len(sample.y))
    model = fit(sample, settings, weight)
    shuffled = fit(sample.take(order), settings, None if weight is None else weight[order])
    assert_same_trees(model, shuffled)
    assert_same(model, shuffled, sample.X)


@holds(15, sample=several, settings=given_settings)
def test_renaming_the_classes_permutes_the_columns_of_probabilities_and_nothing_else(sample, settings):
    names = sample.rng.permutation(sample.y.max() + 1)
    model, renamed = fit(sample, settings), make_classifier(**settings).fit(sample.X, names[sample.y])
    np.testing.assert_array_equal(model.decision_function(sample.X), renamed.decision_function(sample.X)[:, names])
    # Sums over classes come in another order.
    np.testing.assert_allclose(model.predict_proba(sample.X), renamed.predict_proba(sample.X)[:, names], rtol=1e-12)


@holds(20, sample=tables, settings=given_settings, weigh=st.none() | weights())
def test_swapping_two_classes_turns_the_score_over(sample, settings, weigh):
    weight = None if weigh is None else weigh(sample)
    model, swapped = fit(sample, settings, weight), make_classifier(**settings).fit(sample.X, 1 - sample.y, weight)
    np.testing.assert_array_equal(model.decision_function(sample.X), -swapped.decision_function(sample.X))


@holds(12, sample=samples(rows=(150, 250), columns=(2, 5), kinds=["few values"]), settings=given_settings)
def test_the_order_of_the_columns_does_not_matter_where_gains_differ(sample, settings):
    assume("copy" not in sample.kinds)
    drawn_by_place = ("max_features", "subsample", "extra_trees")
    settings = {name: value for name, value in settings.items() if name not in drawn_by_place}
    settings |= {"max_depth": 1, "min_samples_leaf": 10}
    weight, order = sample.rng.uniform(0.5, 1.0, len(sample.y)), sample.rng.permutation(sample.X.shape[1])
    model = fit(sample, settings, weight)
    moved = make_classifier(**settings).fit(sample.X[:, order], sample.y, weight)
    np.testing.assert_array_equal(model.decision_function(sample.X), moved.decision_function(sample.X[:, order]))
    np.testing.assert_array_equal(list_forests(model)[0].feature, np.append(order, -1)[list_forests(moved)[0].feature])


@holds(20, sample=samples(classes=(2, 4)), settings=any_settings, value=st.sampled_from([0.0, np.nan, -7.0, 1e308]))
def test_a_constant_column_changes_nothing(sample, settings, value):
    place = int(sample.rng.integers(0, sample.X.shape[1] + 1))
    wider = np.insert(sample.X, place, value, axis=1)
    model, other = fit(sample, settings), make_classifier(**settings).fit(wider, sample.y)
    assert_same_trees(model, other, but=("feature",))
    assert_same(model, other, sample.X, wider)
    assert other.importances("splits")[place] == 0


@holds(25, sample=samples(classes=(2, 4), rows=(6, 40)), settings=any_settings)
def test_a_weight_of_k_is_k_copies(sample, settings):
    weight = sample.rng.integers(0, 5, len(sample.y))
    weight[np.unique(sample.y, return_index=True)[1]] = 3
    copies = np.repeat(np.arange(len(sample.y)), weight)
    model, copied = fit(sample, settings, weight), fit(sample.take(sample.rng.permutation(copies)), settings)
    assert_same_trees(model, copied)
    # Noise is found by sums, which are rounded.
    assert_same(model, copied, sample.X, rtol=1e-8 if hasattr(model, "choice_") else 0.0)


@holds(12, sample=tables, settings=given_settings, exponent=st.integers(-900, 900))
def test_the_scale_of_all_weights_does_not_matter(sample, settings, exponent):
    # These two settings count rows.
    settings = {name: value for name, value in settings.items() if name not in ("l2", "min_samples_leaf")}
    weight = sample.rng.uniform(0.25, 0.9, len(sample.y))
    model, scaled = fit(sample, settings, weight), fit(sample, settings, np.ldexp(weight, exponent))
    np.testing.assert_array_equal(model.decision_function(sample.X), scaled.decision_function(sample.X))


@holds(5, sample=samples(classes=(2, 3), rows=(40, 60), columns=(3, 5)), settings=any_settings, jobs=st.integers(2, 9))
def test_the_number_of_threads_does_not_matter(sample, settings, jobs):
    wide = repeat_for_threads(sample)
    assert_same_trees(fit(wide, settings), fit(wide, settings | {"n_jobs": jobs}))


def repeat_for_threads(sample):
    """Enough of it for threads to be used: 20,000 cells."""
    times = -(-20_000 // sample.X.size)
    X = np.tile(sample.X, (times, 1))
    return type(sample)(X * np.linspace(1.0, 0.5, len(X))[:, None], np.tile(sample.y, times), sample.rng, sample.kinds)


# ---- the same table in another form ----

LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "unaligned": lambda X: misalign(X),
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "a subclass": lambda X: X.view(np.recarray),
    "a list": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "float32": lambda X: X.astype(np.float32),
}


def misalign(X):
    room = np.zeros(X.nbytes + 1, dtype=np.uint8)
    room[1:] = np.frombuffer(X.tobytes(), np.uint8)
    return room[1:].view(X.dtype).reshape(X.shape)


@holds(30, sample=samples(classes=(2, 3)), settings=given_settings, layout=st.sampled_from(sorted(LAYOUTS)))
def test_the_layout_of_an_array_does_not_matter(sample, settings, layout):
    if layout == "float32":
        with np.errstate(over="ignore"):
            exact = sample.X.astype(np.float32).astype(np.float64)
        assume(np.isfinite(exact[~np.isnan(exact)]).all())
        sample = type(sample)(exact, sample.y, sample.rng, sample.kinds)
    form = LAYOUTS[layout](sample.X)
    model, other = fit(sample, settings), make_classifier(**settings).fit(form, sample.y)
    assert_same_trees(model, other, but=("threshold",) if layout == "float32" else ())
    assert_same(model, other, form, sample.X)


TYPES = [
    "float16",
    "float32",
    "float64",
    "longdouble",
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint64",
    "bool",
    ">i4",
    ">f2",
]


@holds(24, sample=samples(kinds=["bits"], gaps=False), settings=any_settings, kind=st.sampled_from(TYPES))
def test_the_type_of_numbers_does_not_matter(sample, settings, kind):
    model, other = fit(sample, settings), make_classifier(**settings).fit(sample.X.astype(kind), sample.y)
    assert_same(model, other, sample.X.astype(kind), sample.X)


FRAMES = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda X: pd.DataFrame(X).convert_dtypes(),
    "polars": lambda X: pl.DataFrame({f"x{i}": column for i, column in enumerate(X.T)}),
    "arrow": lambda X: pa.table({f"x{i}": column for i, column in enumerate(X.T)}),
}


@holds(20, sample=samples(classes=(2, 3)), settings=given_settings, form=st.sampled_from(sorted(FRAMES)))
def test_the_library_a_table_comes_from_does_not_matter(sample, settings, form):
    table = FRAMES[form](sample.X)
    model, other = fit(sample, settings), make_classifier(**settings).fit(table, sample.y)
    assert_same_trees(model, other)
    np.testing.assert_array_equal(model.predict_proba(sample.X), other.predict_proba(table))


@holds(
    15,
    sample=samples(),
    settings=given_settings,
    names=st.lists(st.text(max_size=4), min_size=2, max_size=6, unique=True),
)
def test_what_categories_are_called_does_not_matter(sample, settings, names):
    kinds = sample.rng.integers(0, len(names), len(sample.y))
    in_order = np.array(sorted(names), dtype=object)
    frame = pd.DataFrame(sample.X, columns=[f"x{i}" for i in range(sample.X.shape[1])])
    called, numbered = frame.assign(kind=in_order[kinds]), frame.assign(kind=kinds)
    by_kind = make_classifier(categorical_features=["kind"], **settings)
    model, other = by_kind.fit(called, sample.y), clone(by_kind).fit(numbered, sample.y)
    assert_same(model, other, called, numbered)


@st.composite
def frames(draw):
    """Numbers with gaps, text and Booleans, under any names; and labels."""
    sample = draw(samples(rows=(12, 60), columns=(1, 3)))
    n = len(sample.y)
    words = draw(st.lists(st.text(max_size=3), min_size=1, max_size=5, unique=True))
    names = draw(st.lists(st.text(min_size=1, max_size=5), min_size=5, max_size=5, unique=True))
    text = np.array(words, dtype=object)[sample.rng.integers(0, len(words), n)]
    text[sample.rng.random(n) < draw(st.sampled_from([0.0, 0.2, 1.0]))] = None
    columns = [*sample.X.T, text, sample.rng.random(n) < 0.5]
    return pd.DataFrame(dict(zip(names, columns, strict=False))), sample.y, sample.rng


@holds(20, drawn=frames(), settings=given_settings)
def test_frames_of_numbers_and_text_mind_neither_order_nor_files_nor_code(drawn, settings):
    frame, y, rng = drawn
    text = frame.columns[-2]
    model = make_classifier(categorical_features=[text], **settings).fit(frame, y)
    order = rng.permutation(len(y))
    shuffled = make_classifier(categorical_features=[text], **settings).fit(frame.iloc[order], y[order])
    for other in (shuffled, loads(dumps(model)), pickle.loads(pickle.dumps(model))):
        assert_same_trees(model, other)
        assert_same(model, other, frame)
    names = {}
    exec(compile(export.to_code(model, "python"), "model.py", "exec"), names)
    said = [names["predict_proba"](row) for row in export.numbers(model, frame).tolist()]
    np.testing.assert_allclose(said, model.predict_proba(frame), rtol=1e-7, atol=1e-9)
    unseen, missing = frame.assign(**{text: "never seen"}), frame.assign(**{text: None})
    np.testing.assert_array_equal(model.predict_proba(unseen), model.predict_proba(missing))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


@holds(15, sample=samples(rows=(20, 60)), settings=given_settings, sign=st.sampled_from([-1, 1]))
def test_a_monotone_column_never_turns_the_score_back(sample, settings, sign):
    model = fit(sample, settings | {"monotonic_cst": [sign] + [0] * (sample.X.shape[1] - 1)})
    values = np.unique(sample.X[:, 0][~np.isnan(sample.X[:, 0])])
    for row in sample.X[:5]:
        line = np.tile(row, (len(values), 1))
        line[:, 0] = values
        if len(values):
            assert (sign * np.diff(model.decision_function(line)) >= -1e-12).all()


@holds(10, sample=samples(classes=(2, 3), rows=(20, 60)), settings=given_settings, few=st.integers(1, 5))
def test_rows_to_validate_never_train(sample, settings, few):
    other = sample.rng.integers(0, len(sample.y), few)
    plain = fit(sample, settings)
    watched = make_classifier(**settings).fit(
        sample.X, sample.y, X_val=sample.X[other] * 0.5, y_val=sample.y[other], sample_weight_val=np.full(few, 0.5)
    )
    assert_same_trees(plain, watched)
    assert_same(plain, watched, sample.X)


# ---- labels ----

LABELS = {
    "negative": lambda k: np.arange(k) - k // 2,
    "small": lambda k: np.arange(k, dtype=np.int8),
    "unsigned": lambda k: np.arange(k, dtype=np.uint64) + np.uint64(2**63),
    "big-endian": lambda k: np.arange(k, dtype=">i4") * 1000,
    "large": lambda k: np.arange(k) - 2**62,
    "whole floats": lambda k: np.arange(k) * 2.0 - 3.0,
    "half precision": lambda k: np.arange(k, dtype=np.float16),
    "text": lambda k: np.array([f"class {i:02d}" for i in range(k)]),
    "objects": lambda k: np.array([f"ç{i:02d}" for i in range(k)], dtype=object),
    "empty text": lambda k: np.array(["", *(f"{i:02d}" for i in range(k - 1))]),
    "Booleans": lambda k: np.array([False, True]),
}


@holds(24, sample=samples(classes=(2, 6)), settings=given_settings, kind=st.sampled_from(sorted(LABELS)))
def test_labels_of_every_type_come_back_as_they_were(sample, settings, kind):
    names = LABELS[kind](sample.y.max() + 1)
    assume(len(names) > sample.y.max())
    model, named = fit(sample, settings), make_classifier(**settings).fit(sample.X, names[sample.y])
    assert_same_trees(model, named)
    np.testing.assert_array_equal(named.classes_, names)
    predicted = named.predict(sample.X)
    np.testing.assert_array_equal(predicted, names[model.predict(sample.X)])
    assert predicted.dtype == named.classes_.dtype
    for form in (list, tuple, pd.Series):
        again = make_classifier(**settings).fit(sample.X, form(names[sample.y].tolist()))
        np.testing.assert_array_equal(again.predict(sample.X), predicted)


# ---- copies of a model ----


@holds(8, sample=samples(classes=(2, 4)), settings=given_settings | st.none(), names=st.booleans())
def test_files_pickles_and_clones_change_no_bit(tmp_path_factory, sample, settings, names):
    """The settings of the paper's class, or the whole recipe."""
    X = pd.DataFrame(sample.X, columns=[f"x{i}" for i in range(sample.X.shape[1])]) if names else sample.X
    unfitted = UntwistClassifier(random_state=0, n_jobs=1) if settings is None else make_classifier(**settings)
    model = unfitted.fit(X, sample.y)
    path = tmp_path_factory.mktemp("files") / "model.untwist"
    save(model, path)
    pickled = [pickle.loads(pickle.dumps(model, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL)]
    for copy in (load(path), loads(dumps(model)), *pickled, clone(model).fit(X, sample.y)):
        assert_same_trees(model, copy)
        assert_same(model, copy, X)
        assert dumps(copy) == dumps(model)
        assert list_plain_parameters(copy) == list_plain_parameters(model)


def list_plain_parameters(model):
    """Its parameters, those of its `growth` among them; objects of scikit-learn's kind equal nothing but themselves."""
    return {name: value for name, value in model.get_params().items() if name != "growth"}


# ---- what is said of a model ----


@holds(15, sample=samples(classes=(2, 4)), settings=given_settings)
def test_leaves_and_their_values_add_up_to_the_score(sample, settings):
    model = fit(sample, settings)
    leaves = model.apply(sample.X).reshape(len(sample.y), -1, len(list_forests(model)))
    scores = np.column_stack([one.scores(sample.X) for one in list_forests(model)])
    for place, forest in enumerate(list_forests(model)):
        nodes = leaves[:, : len(forest), place] + forest.offset[:-1]
        assert (forest.feature[nodes] < 0).all()
        np.testing.assert_allclose(forest.value[nodes].sum(axis=1), scores[:, place], rtol=1e-12, atol=1e-12)


@holds(12, sample=samples(classes=(2, 3)), settings=given_settings)
def test_contributions_add_up_to_the_score_and_unused_columns_have_none(sample, settings):
    model = fit(sample, settings)
    found = explain.explain(model, sample.X)
    expected = model.decision_function(sample.X)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(expected).max()))
    unused = model.importances("splits") == 0
    assert not found.values[:, unused].any()


@holds(12, sample=samples(classes=(2, 3)), settings=any_settings)
def test_the_code_of_a_model_says_what_the_model_says(sample, settings):
    model = fit(sample, settings)
    names = {}
    exec(compile(export.to_code(model, "python"), "model.py", "exec"), names)
    rows = export.numbers(model, sample.X)
    said = np.array([names["predict_proba"](row) for row in rows.tolist()])
    np.testing.assert_allclose(said, model.predict_proba(sample.X), rtol=1e-7, atol=1e-9)
    assert export.to_code(model, "c").count("predict_proba") >= 1


@holds(25, sample=tables, alpha=st.sampled_from([0.5, 0.9, 1.0, 1.1, 1.5, 2.0, -1.5]), depth=st.integers(1, 4),
       link=st.sampled_from(["clipped", "exact"]), share=st.sampled_from([0.1, 0.5, 1.0]),
       weigh=st.none() | weights(["whole", "reals"]))  # fmt: skip
def test_the_training_risk_falls_where_the_certificate_applies(sample, alpha, depth, link, share, weigh):
    weight = None if weigh is None else weigh(sample)
    settings = {"alpha": alpha, "n_estimators": 8, "max_depth": depth, "link": link, "n_jobs": 1}
    model = fit(sample, settings, weight)
    model = fit(sample, settings | {"step_size": share * model.step_size_}, weight)
    certificate = model.certificate(sample.X, sample.y, weight)
    for one in (certificate.exact, certificate.implied):
        assert "violated" not in one.verdicts
        promised = np.array(one.verdicts) == "met"
        assert (one.decrease[promised] >= -1e-9).all()
    assert (
        certificate.implied.last_risk <= certificate.implied.first_risk + 1e-9
        or "met" not in certificate.implied.verdicts
    )


@holds(4, sample=samples(rows=(40, 80), kinds=["usual", "few values", "gaps"]), flips=st.sampled_from([0.0, 0.2]))
def test_an_audit_judges_every_row_whatever_the_order(sample, flips):
    model = QuickClassifier(n_estimators=8, random_state=0, n_jobs=1)
    y = np.where(sample.rng.random(len(sample.y)) < flips, 1 - sample.y, sample.y)
    assume(len(np.unique(y)) == 2)
    found = audit_labels(sample.X, y, model.fit(sample.X, y))
    assert ((found.wrong >= 0) & (found.wrong <= 1)).all()
    assert_probabilities(found.posterior, (len(y), 2))
    np.testing.assert_array_equal(np.sort(found.ranking), np.arange(len(y)))
    assert 0 <= found.noise_rate[1] <= found.noise_rate[0] <= found.noise_rate[2] <= 1
    suspects = found.suspects()
    assert len(suspects) == round(found.wrong.sum())
    np.testing.assert_array_equal(suspects, found.ranking[: len(suspects)])
    kept = np.delete(np.arange(len(y)), suspects)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # It says what is not replaced.
        np.testing.assert_array_equal(found.corrected()[kept], y[kept])
    order = sample.rng.permutation(len(y))
    shuffled = audit_labels(sample.X[order], y[order], clone(model).fit(sample.X[order], y[order]))
    np.testing.assert_array_equal(
        sort_by_contents(sample.X, y, found.wrong), sort_by_contents(sample.X[order], y[order], shuffled.wrong)
    )


def sort_by_contents(X, y, values):
    """Values in the order of the rows' contents: which of two copies a fold gets does not matter."""
    return values[np.lexsort((values, y, *X.T))]
