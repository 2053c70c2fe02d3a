"""Model files: nothing lost, nothing executed, nothing believed."""

import errno
import json
import math
import os
import pickle
import stat
import struct
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import untwist
from helpers.model_bytes import put_together, sign, take_apart
from helpers.model_fixtures import FOLDER, draw_labels, draw_noise_by_source, draw_rows, fit_models
from helpers.quick import QuickClassifier, make_classifier
from helpers.sourced_rows import draw_sourced_rows
from untwist import PILBoostClassifier, UntwistClassifier, files
from untwist.audit import audit_labels
from untwist.data.cells import Reading
from untwist.files import dumps, load, loads, reading, save, writing
from untwist.files.layout import SOURCE_ARRAYS
from untwist.losses import AlphaLoss
from untwist.noise.sources import NoiseBySource

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fitted():
    return fit_models()


@pytest.fixture(scope="module")
def contents(fitted):
    return {name: dumps(model) for name, model in fitted.items()}


def assert_same_answers(model, other, X):
    assert type(other) is type(model)
    is_plain = isinstance(model, PILBoostClassifier)
    names = ["predict", "predict_proba", "predict_proba_twisted", "decision_function", *["apply"] * is_plain]
    for name in names:
        before, after = getattr(model, name)(X), getattr(other, name)(X)
        assert before.dtype == after.dtype, name
        np.testing.assert_array_equal(before, after, err_msg=name)
    rows = model.model_.encoder.encode(X)
    np.testing.assert_array_equal(other.model_.leaves(rows), model.model_.leaves(rows))
    for before, after in zip(model.model_.staged_scores(rows), other.model_.staged_scores(rows), strict=True):
        np.testing.assert_array_equal(before, after)


def list_parameters(model):
    """The parameters, with those of `growth` by their own names: the object itself is another after each load."""
    return {name: value for name, value in model.get_params().items() if name != "growth"}


OF_SEVERAL_CLASSES = ["together", "matrices", "matrix"]
BY_SOURCE = ["branches", "months"]
OTHERS = ["automatic", "several", "negative", "exact", "given", "coded", "readings", "prior", "priors", "scores"]
NAMES = OF_SEVERAL_CLASSES + BY_SOURCE + OTHERS


@pytest.mark.parametrize("name", NAMES)
def test_a_round_trip_loses_nothing(name, fitted, contents):
    model, X = fitted[name], draw_rows(500, seed=3)
    other = loads(contents[name])
    assert_same_answers(model, other, X)
    assert dumps(other) == contents[name]
    assert dumps(pickle.loads(pickle.dumps(model))) == contents[name]
    assert list_parameters(other) == list_parameters(model)
    before, after = model.model_, other.model_
    for what in ("alpha", "step_size", "n_rounds", "seed", "init", "choice"):
        assert getattr(after, what) == getattr(before, what), what
    assert repr(after.link) == repr(before.link)
    assert str(other.noise_) == str(model.noise_)
    for kind in ("paper", "gain", "splits"):
        np.testing.assert_array_equal(other.importances(kind), model.importances(kind))
    for what in ("leverages", "edges"):
        for one, two in zip(np.atleast_1d(after.by_class(what)), np.atleast_1d(before.by_class(what)), strict=True):
            np.testing.assert_array_equal(one, two)
    assert after.validation_curves().keys() == before.validation_curves().keys()
    np.testing.assert_array_equal(after.validation_rows, before.validation_rows)


def test_classes_that_were_chosen_together_by_folds():
    X = draw_rows(150)
    model = UntwistClassifier(categorical_features=[1], random_state=0, n_jobs=1).fit(X, draw_labels(X, [1, 2, 3]))
    content = dumps(model)
    other = loads(content)
    assert_same_answers(model, other, draw_rows(50, seed=3))
    assert dumps(other) == content
    assert other.choice_ == model.choice_
    assert other.choice_.mixture is not None
    assert str(other.noise_) == str(model.noise_)
    np.testing.assert_array_equal(other.noise_.matrix, model.noise_.matrix)


def test_a_table_with_names_and_text(tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(draw_rows(), columns=["größe", "city", 'a "b"\n', "d"])
    X["city"] = X["city"].map({0.0: "Åre", 1.0: "x,y", 2.0: "", 3.0: "z", 4.0: "☃"}).astype("category")
    model = PILBoostClassifier(alpha=2.0, n_estimators=9, max_depth=4).fit(X, draw_labels(draw_rows(), ["nej", "ja"]))
    save(model, tmp_path / "model.untwist")
    other = load(tmp_path / "model.untwist")
    assert_same_answers(model, other, X)
    assert list(other.feature_names_in_) == list(X)
    with pytest.raises(ValueError, match="feature names"):
        other.predict(X[["d", "city", "größe", 'a "b"\n']])
    assert os.listdir(tmp_path) == ["model.untwist"]


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["a", "bcd"]),
        np.array(["a", "b"], dtype="<U10"),
        np.array(["a", "b"], dtype=object),
        np.array([-3, 2**62]),
        np.array([1, 2], dtype=np.uint8),
        np.array([1, 2], dtype=np.float32),
        np.array([False, True]),
    ],
    ids=lambda one: str(one.dtype),
)
def test_labels_keep_their_type(classes):
    X = draw_rows(80)
    model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(X, classes[(X[:, 2] > 0).astype(int)])
    other = loads(dumps(model))
    assert other.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.predict(X).dtype == model.predict(X).dtype


def test_odd_settings_survive():
    X = draw_rows(80)
    settings = {"alpha": math.inf, "n_estimators": np.int64(3), "max_depth": 2, "monotonic_cst": np.array([0, 0, 1, 0])}
    settings |= {"callbacks": [lambda progress: None], "random_state": np.random.RandomState(0)}
    model = make_classifier(**settings).fit(X, X[:, 2] > 0)
    other = loads(dumps(model))
    assert_same_answers(model, other, X)
    assert other.alpha == math.inf
    assert other.callbacks is None
    assert other.random_state is None
    assert_same_answers(other.fit(X, X[:, 2] > 0), model, X)  # The loaded model can be fitted again.


def test_what_cannot_be_written_is_refused():
    with pytest.raises(NotFittedError):
        dumps(UntwistClassifier())
    with pytest.raises(ValueError, match=r"only UntwistClassifier and PILBoostClassifier can be .*, got a list"):
        dumps([])
    X = draw_rows(60)[:, 2:]
    with pytest.raises(ValueError, match="only forests can be written"):
        dumps(PILBoostClassifier(engine="reference", n_estimators=2).fit(X, X[:, 0] > 0))
    model = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1).fit(X, X[:, 0] > 0)
    model.model_ = replace(model.model_, classes=np.array(["2020", "2021"], dtype="datetime64[Y]"))
    with pytest.raises(ValueError, match=r"labels of type datetime64\[Y\] cannot be written to a file"):
        dumps(model)
    model.class_weight = {1: object()}
    with pytest.raises(ValueError, match="class_weight cannot be written to a file: it holds a object"):
        dumps(model)


def test_a_loaded_model_knows_no_training_rows(contents):
    X = draw_rows()
    with pytest.raises(ValueError, match="A file keeps no posteriors of folds"):
        audit_labels(X, draw_labels(X, ["no", "yes"]), loads(contents["automatic"]))


# The file on disk


def test_an_older_file_survives_a_full_disk(tmp_path, fitted, monkeypatch):
    path = tmp_path / "model.untwist"
    save(fitted["negative"], path)
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(fitted["exact"], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
    monkeypatch.undo()
    save(fitted["exact"], path)
    assert path.read_bytes() == dumps(fitted["exact"])
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_a_missing_folder_or_file_is_an_os_error(tmp_path, fitted):
    with pytest.raises(FileNotFoundError):
        save(fitted["negative"], tmp_path / "nowhere" / "model.untwist")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def test_the_package_has_both(tmp_path, fitted):
    untwist.save(fitted["negative"], tmp_path / "m")
    assert_same_answers(untwist.load(str(tmp_path / "m")), fitted["negative"], draw_rows(10))


@pytest.mark.parametrize("name", NAMES)
def test_files_of_0_3_0_are_read_and_predict_what_they_did(name):
    path = FOLDER / f"format-300-{name}.untwist"
    expected = json.loads((FOLDER / "format-300.json").read_text())[path.name]
    model = load(path)
    # Products with matrices, and exp and log of NumPy, are rounded as each machine and version does.
    proba = [[*map(float.fromhex, row)] for row in expected]
    np.testing.assert_allclose(model.predict_proba(draw_rows(20, seed=7)), proba, rtol=0, atol=1e-13)
    (header, data), (first_header, first_data) = take_apart(dumps(model)), take_apart(path.read_bytes())
    assert data == first_data
    for key in first_header.keys() - {"settings", "untwist"}:
        assert header[key] == first_header[key], key


def test_there_is_a_file_of_every_kind_of_model(contents):
    names = {path.name for path in FOLDER.glob("*.untwist")}
    assert names == {f"format-300-{name}.untwist" for name in contents}


def test_the_alpha_loss_is_written_as_its_alpha():
    X = draw_rows(80)
    settings = {"n_estimators": 3, "max_depth": 2, "random_state": 0}
    model = make_classifier(loss=AlphaLoss(2.0), **settings).fit(X, X[:, 2] > 0)
    other = loads(dumps(model))
    assert_same_answers(model, other, X)
    assert (other.alpha, other.loss) == (2.0, None)
    assert dumps(other) == dumps(make_classifier(alpha=2.0, **settings).fit(X, X[:, 2] > 0))


# What is no model file


def test_other_files_are_refused_with_their_name(tmp_path, contents):
    path = tmp_path / "x.untwist"
    for content, words in [
        (b"", "no untwist model file"),
        (b"PK\x03\x04 whatever", "no untwist model file"),
        (pickle.dumps({}), "no untwist model file"),
        (contents["negative"][:20], "ends too early"),
        (contents["negative"][:-1], "damaged"),
        (contents["negative"] + b"\0", "damaged"),
        (set_version(contents["negative"], 6), "has format 6, not 300: untwist 0.2.0 reads it"),
        (set_version(contents["negative"], 10_203), "has format 10203, not 300: untwist 1.2.3 and newer read it"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words) as error:
            load(path)
        assert str(error.value).startswith(f"{path}: ")


def set_version(content, version):
    return sign(content[:8] + struct.pack("<I", version) + content[12:-32])


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_always_refused(name, contents):
    """1000 random damages in all: bits, bytes, cuts, insertions, blocks of zeros, parts swapped."""
    rng = np.random.default_rng(NAMES.index(name))
    content = contents[name]
    for _ in range(200):
        damaged = bytearray(content)
        at, length = int(rng.integers(len(content))), int(rng.integers(1, 200))
        match rng.integers(6):
            case 0:
                damaged[at] ^= 1 << int(rng.integers(8))
            case 1:
                damaged[at : at + length] = rng.bytes(len(damaged[at : at + length]))
            case 2:
                del damaged[at:]
            case 3:
                damaged[at:at] = rng.bytes(length)
            case 4:
                damaged[at : at + length] = bytes(len(damaged[at : at + length]))
            case 5:
                damaged = damaged[at:] + damaged[:at]
        if bytes(damaged) == content:
            continue
        with pytest.raises(ValueError, match="model file"):
            loads(bytes(damaged))


def list_places(value, path=()):
    """Every place in a header."""
    yield path
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from list_places(one, (*path, key))


ODD = [None, True, False, -1, 0, 1, 2**31, 2**63, 10**30, 1e308, "", "x", "__class__", [], {}, [[]], {"number": "inf"}]
ODD += [{"number": "nan"}, {"number": "x"}, {"pairs": []}, {"pairs": [[[], 1]]}, {"tuple": [1]}, {"pairs": 3}, 0.5]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(2)
def test_a_hostile_file_with_a_right_checksum_is_refused_or_harmless(name, contents):
    """Values of the header replaced by odd ones, bytes of the arrays by random ones: an error, or sane numbers."""
    rng = np.random.default_rng(NAMES.index(name))
    header, data = take_apart(contents[name])
    everywhere = [path for path in list_places(header) if path]
    X = draw_rows(8)
    refused = 0
    for _ in range(200):
        changed, bytes_ = json.loads(json.dumps(header)), bytearray(data)
        if rng.random() < 0.7:
            *way, last = everywhere[int(rng.integers(len(everywhere)))]
            parent = changed
            for key in way:
                parent = parent[key]
            if rng.random() < 0.2 and isinstance(parent, (dict, list)):
                del parent[last]
            else:
                parent[last] = ODD[int(rng.integers(len(ODD)))]
        else:
            at = int(rng.integers(len(bytes_)))
            bytes_[at : at + 8] = rng.bytes(len(bytes_[at : at + 8]))
        try:
            model = loads(put_together(changed, bytes(bytes_)))
        except ValueError as error:
            assert "model file" in str(error)  # noqa: PT017 - it may well load
            refused += 1
            continue
        try:
            p = model.predict_proba(X)
        except ValueError:
            continue  # Predictions need a setting, such as n_jobs, and do not accept its value.
        assert np.isfinite(p).all()
        assert ((p >= 0) & (p <= 1)).all()
    assert refused > 75


def test_a_small_file_cannot_ask_for_much(contents):
    header, data = take_apart(contents["several"])
    twice = json.loads(json.dumps(header))
    twice["ensembles"][1] = twice["ensembles"][0]  # The same arrays are used over and over.
    wide = json.loads(json.dumps(header))
    wide["columns"]["count"] = 2**22
    overlapping = json.loads(json.dumps(header))
    for one in overlapping["arrays"]:
        one[1], one[2] = 100, 0
    for hostile in (twice, wide, overlapping):
        with pytest.raises(ValueError, match="model file"):
            loads(put_together(hostile, data))
    nested = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    nested += b" " * (-(24 + len(nested)) % 8)
    with pytest.raises(ValueError, match="model file"):
        loads(sign(struct.pack("<8sIIQ", b"UNTWIST\0", 300, 0, len(nested)) + nested))
    with pytest.raises(ValueError, match="model file"):
        loads(put_together({**header, "noise": {"number": "nan"}}, data).replace(b"{", b"["))


def test_a_tree_that_would_loop_or_leave_the_file_is_refused(contents):
    header, data = take_apart(contents["negative"])
    for name, value in [("left", 0), ("left", 10**6), ("left", -1), ("feature", 4), ("feature", -2), ("set", 10**6)]:
        kind, size, offset = header["arrays"][header["ensembles"][0][name]]
        assert kind == "<i4"
        changed = bytearray(data)
        for node in range(min(size, 50)):
            struct.pack_into("<i", changed, offset + 4 * node, value)
        with pytest.raises(ValueError, match="model file"):
            loads(put_together(header, bytes(changed)))


# The description of the format is right: a reader of its own, written from docs/model-file.md


def read_array(header, data, number, *shape):
    kind, size, offset = header["arrays"][number]
    return np.frombuffer(data, kind, size, offset).reshape(shape or size)


def walk(header, data, ensemble, row):
    """The score of a row, or its scores, by nothing but the format's description."""
    ensemble = dict(ensemble)
    outputs, start = ensemble.pop("outputs"), ensemble.pop("start")
    forest = {name: read_array(header, data, number) for name, number in ensemble.items()}
    leaves_before = np.cumsum(forest["feature"] == -1) - 1
    score = start
    for first in forest["offset"][:-1]:
        node = 0
        while (feature := forest["feature"][first + node]) >= 0:
            at, x = first + node, row[feature]
            if math.isnan(x):
                left = bool(forest["missing_left"][at])
            elif forest["set"][at] >= 0:
                left = bool(int(forest["codes"][4 * forest["set"][at] + int(x) // 64]) >> (int(x) % 64) & 1)
            else:
                left = x <= forest["threshold"][at]
            node = forest["left"][at] + (not left)
        place = first + node
        if outputs == 1:
            score += forest["value"][place]
        else:
            first_value = outputs * leaves_before[place]
            score = score + forest["value"][first_value : first_value + outputs]
    return score


def compute_probabilities(header, data, scores, inverse):
    """What becomes of the scores of a row of several classes, by nothing but the description."""
    floor = 1.0 / (header["weight"] + 2.0)

    def limit(p, s):
        within = np.clip(p, floor, 1.0 - floor) + 1e-6 * floor * s / (1.0 + np.abs(s))
        return within / within.sum()

    def scale(odds):
        return odds / odds.sum()

    alpha = header["link"]["alpha"]
    if not header["untwists"]:
        return limit(scale(np.exp(alpha * scores)), scores)
    is_softmax = header["link"]["kind"] == "softmax"
    twisted = limit(scale(np.exp(scores)) if is_softmax else inverse(scores), scores)
    class_weights = np.array(header["class_weights"])
    class_weights[class_weights == 0] = 1.0
    twisted = scale(twisted / class_weights)
    noise, count = header["noise"], len(scores)
    weights = read_array(header, data, noise["weights"])
    matrices = read_array(header, data, noise["matrices"], len(weights), count, count)
    slopes, offsets = (read_array(header, data, noise[name], len(weights), count) for name in ("slopes", "offsets"))
    clean = np.zeros(count)
    for weight, matrix, slope, offset in zip(weights, matrices, slopes, offsets, strict=True):
        plain = scale(np.maximum(np.linalg.solve(matrix.T, twisted), noise["least"]))
        clean += weight * scale(np.exp(offset) * plain**slope)
    clean = scale(clean * class_weights)
    return limit(clean, np.log(clean))


def assert_described(header):
    page = (ROOT / "docs/model-file.md").read_text()
    for key in [*header, *header["columns"], *header["ensembles"][0], *(header["noise"] or {})]:
        assert f"`{key}`" in page, key


@pytest.mark.parametrize("name", ["automatic", "exact", "given", "prior"])
def test_the_format_is_as_described(name, fitted, contents):
    header, data = take_apart(contents[name])
    X = draw_rows(30, seed=9)
    encoded = fitted[name].model_.encoder.encode(X)
    scores = fitted[name].model_.scores(encoded)
    (ensemble,) = header["ensembles"]
    assert [walk(header, data, ensemble, row) for row in encoded] == pytest.approx(scores, abs=1e-12)
    assert header["columns"]["categories"] == [[1, [0, 1, 2, 3, 4]]]
    assert_described(header)


@pytest.mark.parametrize("name", OF_SEVERAL_CLASSES)
def test_the_format_of_several_classes_is_as_described(name, fitted, contents):
    header, data = take_apart(contents[name])
    model, X = fitted[name], draw_rows(30, seed=9)
    for row, expected in zip(model.model_.encoder.encode(X), model.predict_proba(X), strict=True):
        scores = np.hstack([walk(header, data, ensemble, row) for ensemble in header["ensembles"]])
        found = compute_probabilities(header, data, scores, model.model_.link.inverse)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert_described(header)


def test_only_leaves_have_values_where_classes_share_trees(fitted, contents):
    header, _ = take_apart(contents["together"])
    (ensemble,) = header["ensembles"]
    forest = fitted["together"].model_.shared_forests[0]
    assert ensemble["outputs"] == 4
    assert header["arrays"][ensemble["value"]][1] == 4 * np.count_nonzero(forest.feature < 0)


def change(header, **values):
    copy = json.loads(json.dumps(header))
    copy.update(values)
    return copy


def test_no_number_gets_by_that_makes_predictions_nan(contents):
    header, data = take_apart(contents["given"])
    for hostile in (
        change(header, weight={"number": "nan"}),
        change(header, class_weights=[5e-324, 1.0]),
        change(header, class_weights=[0.0, 0.0]),
        change(header, columns={**header["columns"], "categories": [[1, list(range(300))]]}),
        change(header, classes={"type": "<U9999", "values": [f"{i:05d}" for i in range(50_000)]}),
    ):
        with pytest.raises(ValueError, match="model file"):
            loads(put_together(hostile, data))
    _, size, offset = header["arrays"][header["ensembles"][0]["value"]]
    huge = bytearray(data)
    for leaf in range(size):
        struct.pack_into("<d", huge, offset + 8 * leaf, 1.7e308)
    with pytest.raises(ValueError, match="model file"):
        loads(put_together(header, bytes(huge)))


def test_a_chain_of_splits_is_no_tree(contents):
    header, data = take_apart(contents["negative"])
    depth = 100
    nodes = 2 * depth + 1
    arrays = {
        "offset": np.array([0, nodes], "<i8"),
        "feature": np.array([0] + [0 if i % 2 == 1 and i < nodes - 2 else -1 for i in range(1, nodes)], "<i4"),
        "left": np.array([1] + [i + 2 if i % 2 == 1 else 0 for i in range(1, nodes)], "<i4"),
    }
    for name in ("threshold", "value", "gain"):
        arrays[name] = np.zeros(nodes, "<f8")
    arrays["missing_left"], arrays["set"] = np.zeros(nodes, "|u1"), np.full(nodes, -1, "<i4")
    arrays |= {"edge": np.ones(1), "leverage": np.ones(1), "codes": np.zeros(0, "<u8")}
    parts = bytearray(data)
    for name, array in arrays.items():
        header["arrays"][header["ensembles"][0][name]] = [array.dtype.str, array.size, len(parts)]
        parts += array.tobytes() + bytes(-array.nbytes % 8)
    with pytest.raises(ValueError, match="no deeper than 60"):
        loads(put_together(header, bytes(parts)))


def test_saving_keeps_links_and_permissions_and_devices(tmp_path, fitted):
    real, link = tmp_path / "real.untwist", tmp_path / "link.untwist"
    save(fitted["negative"], real)
    os.chmod(real, 0o600)
    link.symlink_to(real)
    save(fitted["exact"], link)
    assert link.is_symlink()
    assert real.read_bytes() == dumps(fitted["exact"])
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    os.chmod(real, 0o666)  # Most umasks take some of this away from a new file.
    save(fitted["exact"], real)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666
    save(fitted["exact"], "/dev/null")
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)


def test_any_listing_of_columns_and_any_text_can_be_written():
    X = draw_rows(80)
    for columns in (range(1, 2), {1}, np.array([1])):
        model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2, categorical_features=columns).fit(
            X, X[:, 2] > 0
        )
        assert_same_answers(model, loads(dumps(model)), X)
    labels_ = np.where(X[:, 2] > 0, "\ud800", "b")  # This is half of a pair of surrogates.
    model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(X, labels_)
    assert loads(dumps(model)).classes_.tolist() == model.classes_.tolist()


def test_a_set_is_written_in_one_order():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 9)).astype(float)
    one_order, other_order = {0, 8}, {8, 0}
    assert list(one_order) != list(other_order)
    models = [
        PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=2, categorical_features=columns, random_state=0)
        for columns in (one_order, other_order)
    ]
    first, second = (dumps(model.fit(X, X[:, 2] > 0)) for model in models)
    assert first == second


def test_errors_say_what_is_not_so(contents):
    header, data = take_apart(contents["negative"])

    def assert_refused(change, message):
        hostile = json.loads(json.dumps(header))
        change(hostile)
        with pytest.raises(ValueError, match=rf"not so: {message}"):
            loads(put_together(hostile, data))

    with pytest.raises(ValueError, match="'Other' is none of UntwistClassifier, PILBoostClassifier"):
        loads(put_together(change(header, model="Other"), data))
    assert_refused(lambda one: one["columns"].update(names=["a"]), "there is a name for each column")
    assert_refused(lambda one: one["classes"].update(type="M8"), "'M8' is a type of classes")
    first_array = header["ensembles"][0]["offset"]
    inside = f"array {first_array} lies inside the file"
    assert_refused(lambda one: one["arrays"][first_array].__setitem__(2, 10**9), inside)
    whole = f"array {first_array} has a length and an offset"
    assert_refused(lambda one: one["arrays"][first_array].__setitem__(2, -8), whole)
    too_many = [[1, list(range(255))]]
    message = "a column that is not coded by its labels has at most 254 categories"
    assert_refused(lambda one: one["columns"].update(categories=too_many), message)


# Several classes


def overwrite(header, data, number, change):
    """The bytes of the arrays after a change to the numbers of one."""
    kind, size, offset = header["arrays"][number]
    changed = bytearray(data)
    values = np.frombuffer(data, kind, size, offset).copy()
    change(values)
    changed[offset : offset + values.nbytes] = values.tobytes()
    return bytes(changed)


def assert_refused(header, data, message):
    with pytest.raises(ValueError, match=rf"not so: {message}"):
        loads(put_together(header, data))


def set_first(value):
    return lambda values: values.__setitem__(0, value)


def make_singular(values):
    values[:9] = [0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("matrices", set_first(0.99), "the rows of transition matrices are shares that sum to one"),
        ("matrices", set_first(-0.1), "the rows of transition matrices are shares that sum to one"),
        ("matrices", set_first(math.nan), "numbers are finite"),
        ("matrices", make_singular, "transition matrices are invertible"),
        ("weights", set_first(0.0), "weights of matrices are positive"),
        ("weights", set_first(0.9), "weights of matrices sum to one"),
        ("slopes", set_first(-0.5), "slopes are between 0 and"),
        ("slopes", set_first(1e4), "slopes are between 0 and"),
        ("slopes", set_first(math.inf), "numbers are finite"),
        ("offsets", set_first(1e7), "offsets are below"),
        ("class_shares", set_first(1.5), "class_shares are shares"),
        ("class_intervals", set_first(-0.1), "class_intervals are shares"),
    ],
)
def test_matrices_that_make_no_sense_are_refused(name, change, message, contents):
    header, data = take_apart(contents["matrices"])
    assert_refused(header, overwrite(header, data, header["noise"][name], change), message)


@pytest.mark.parametrize("name", ["weights", "matrices", "slopes", "offsets", "class_shares", "class_intervals"])
def test_arrays_of_matrices_have_a_number_for_each_class(name, contents):
    header, data = take_apart(contents["matrices"])
    header["arrays"][header["noise"][name]][1] -= 1
    with pytest.raises(ValueError, match=r"not so: .* has a number for each of its axes"):
        loads(put_together(header, data))


def test_numbers_beside_matrices_are_checked(contents):
    header, data = take_apart(contents["matrices"])
    for values, message in [
        ({"least": 0.0}, "the least posterior is positive"),
        ({"least": 0.5}, "the least posterior is positive"),
        ({"least": {"number": "nan"}}, "the least posterior is positive"),
        ({"found": 1}, "found is true or false"),
        ({"share": 1.5}, r"1\.5 lies in \[0\.0, 1\.0\]"),
        ({"share": {"number": "nan"}}, "nan lies in"),
        ({"interval": {"tuple": [-0.5, 0.5]}}, "-0.5 lies in"),
    ]:
        assert_refused(change(header, noise={**header["noise"], **values}), data, message)


def test_there_is_a_limit_to_the_number_of_matrices(contents, monkeypatch):
    monkeypatch.setattr(reading, "MOST_COMPONENTS", 2)
    with pytest.raises(ValueError, match="not so: there are 1 to 2 matrices"):
        loads(contents["matrices"])


def test_trees_link_and_noise_must_fit_each_other(contents, fitted):
    header, data = take_apart(contents["together"])
    (ensemble,) = header["ensembles"]
    softmax, clipped = header["link"], {"kind": "clipped", "alpha": 2.0}
    one_score = {**ensemble, "outputs": 1}
    for hostile, message in [
        (change(header, link=clipped), "classes share trees where the link is a softmax"),
        (change(header, ensembles=[{**ensemble, "outputs": 3}]), "there are trees for each class"),
        (change(header, ensembles=[{**ensemble, "outputs": 5}]), "a leaf has a value for each class"),
        (change(header, ensembles=[ensemble, ensemble]), "an ensemble with several outputs is the only one"),
        (change(header, ensembles=[one_score]), "there are trees for each class"),
        (change(header, untwists=True), "there is noise to untwist"),
        (change(header, near_duplicates=1), "near_duplicates is true or false"),
        (change(header, link={**softmax, "alpha": -1.0}), "-1.0 lies in"),
    ]:
        assert_refused(hostile, data, message)
    for outputs in (0, 1, 2, -3, 10**9, 2.0, None):
        with pytest.raises(ValueError, match="model file"):
            loads(put_together(change(header, ensembles=[{**ensemble, "outputs": outputs}]), data))
    header, data = take_apart(contents["several"])
    assert_refused(change(header, link=softmax), data, "classes share trees where the link is a softmax")


def test_noise_is_that_of_as_many_classes_as_there_are(contents):
    for name, other, message in (
        ("given", "matrix", "the noise of 2 classes has weights, rates_neg, rates_pos"),
        ("matrix", "given", "the noise of 4 classes has weights, matrices"),
    ):
        header, data = take_apart(contents[name])
        assert_refused(change(header, noise=take_apart(contents[other])[0]["noise"]), data, message)


def test_probabilities_are_untwisted_by_noise_that_is_there(contents):
    header, data = take_apart(contents["given"])
    assert_refused(change(header, untwists=1), data, "untwists is true or false")
    assert_refused(change(header, noise=None), data, "there is noise to untwist")
    believed = loads(put_together(change(header, untwists=False), data)).model_
    assert believed.posterior.noise is None
    assert believed.noise.is_given


def test_values_of_leaves_do_not_ask_for_more_memory_than_the_file_has(contents):
    """Nodes that are all splits but one would have a row of zeros each."""
    header, data = take_apart(contents["together"])
    (ensemble,) = header["ensembles"]
    hostile = overwrite(header, data, ensemble["feature"], lambda values: values.__setitem__(slice(1, None), 0))
    assert_refused(header, hostile, "a tree has one leaf more than splits")


def test_huge_scores_of_classes_that_share_trees_are_refused(contents):
    header, data = take_apart(contents["together"])
    hostile = overwrite(header, data, header["ensembles"][0]["value"], set_first(1e200))
    assert_refused(header, hostile, "scores are finite")


# Noise and sources


def test_what_bends_a_clean_posterior_survives_and_known_rates_have_none(fitted, contents):
    before, after = fitted["automatic"].noise_, loads(contents["automatic"]).noise_
    np.testing.assert_array_equal(after.bends, before.bends)
    np.testing.assert_array_equal(after.shortfalls, before.shortfalls)
    assert after.uneven_limit == before.uneven_limit > 0
    assert str(after) == str(before)
    known = loads(contents["given"]).noise_
    assert (known.bends, known.shortfalls, known.uneven_limit) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("bends", 50.0, "clean posteriors rise"),
        ("bends", np.nan, "numbers are finite"),
        ("shortfalls", -1.0, "numbers are finite and at least 0"),
    ],
)
def test_bends_that_make_no_sense_are_refused(name, value, message, contents):
    header, data = take_apart(contents["automatic"])
    assert_refused(header, overwrite(header, data, header["noise"][name], set_first(value)), message)


def test_a_limit_of_uneven_noise_is_a_share(contents):
    header, data = take_apart(contents["automatic"])
    header["noise"]["uneven_limit"] = 1.5
    assert_refused(header, data, "")


@pytest.mark.parametrize("name", BY_SOURCE)
def test_what_is_known_of_sources_survives(name, fitted, contents):
    before, after = fitted[name].model_, loads(contents[name]).model_
    for field in fields(NoiseBySource):
        one, other = getattr(before.sources, field.name), getattr(after.sources, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    assert after.sources.evidence == before.sources.evidence
    assert after.sources.noise is after.posterior.noise is after.noise
    assert str(after.sources) == str(before.sources)


@pytest.mark.parametrize("classes", [["no", "yes"], [1, 2, 3]])
@pytest.mark.usefixtures("few_components")
@pytest.mark.slow
def test_a_fit_by_source_is_saved_and_loaded(classes):
    X, y, source, _ = draw_sourced_rows(400, classes=len(classes))
    model = UntwistClassifier(random_state=0, n_jobs=1).fit(X, np.array(classes)[y], source=source)
    content = dumps(model)
    other = loads(content)
    assert_same_answers(model, other, X)
    assert dumps(other) == content
    np.testing.assert_array_equal(other.sources_.matrices, model.sources_.matrices)
    if len(classes) == 2:
        np.testing.assert_array_equal(other.alpha_star(X, source), model.alpha_star(X, source))
    without = UntwistClassifier(random_state=0, n_jobs=1).fit(X, np.array(classes)[y])
    assert files.header(dumps(without))["sources"] is None


@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], [-1, 0, 2**62], [0.25, 0.5, 1e300], [False, True], np.array(["x"], dtype="<U9")],
    ids=str,
)
def test_names_of_sources_keep_their_type(names, fitted):
    names, model = np.asarray(names), loads(dumps(fitted["branches"]))
    model.model_ = replace(model.model_, sources=draw_noise_by_source(names, model.model_.noise))
    other = loads(dumps(model))
    assert other.sources_.names.dtype == names.dtype
    assert other.sources_.names.tolist() == names.tolist()


def test_names_that_take_much_memory_are_not_written(fitted, monkeypatch):
    monkeypatch.setattr(writing, "MOST_SOURCE_LETTERS", 17)
    with pytest.raises(ValueError, match="3 sources with names of up to 6 letters cannot be written to a file"):
        dumps(fitted["branches"])
    monkeypatch.setattr(writing, "MOST_SOURCE_LETTERS", 18)
    assert loads(dumps(fitted["branches"])).sources_.names.tolist() == ["", "Lübeck", "☃"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("matrices", 0.99, "the rows of matrices sum to one"),
        ("matrices", -0.1, "numbers are finite and at least 0"),
        ("matrices", math.nan, "numbers are finite and at least 0"),
        ("common", 0.99, "the rows of common sum to one"),
        ("counts", math.inf, "numbers are finite and at least 0"),
        ("counts", 1e300, "the labels of a source weigh less than"),
        ("shares", 1.5, "shares are shares"),
        ("intervals", 0.999, "intervals begin before they end"),
        ("class_intervals", 0.999, "class_intervals begin before they end"),
        ("class_intervals", 1.001, "class_intervals are shares"),
        ("stands_out", 2, "stands_out are shares"),
        ("reliability", 0.0, "a label of any source is worth something"),
        ("reliability", 1.1, "reliability are shares"),
    ],
)
@pytest.mark.parametrize("model", BY_SOURCE)
def test_sources_that_make_no_sense_are_refused(model, name, value, message, contents):
    header, data = take_apart(contents[model])
    assert_refused(header, overwrite(header, data, header["sources"][name], set_first(value)), message)


@pytest.mark.parametrize("name", SOURCE_ARRAYS)
def test_arrays_of_sources_have_a_number_for_each(name, contents):
    header, data = take_apart(contents["months"])
    header["arrays"][header["sources"][name]][1] -= 1
    assert_refused(header, data, f"{name} has a number for each of its axes")


def test_what_is_said_beside_the_arrays_of_sources_is_checked(contents):
    header, data = take_apart(contents["branches"])
    names = header["sources"]["names"]
    for values, message in [
        ({"names": {**names, "values": ["a", "a", "b"]}}, "sources are sorted and different"),
        ({"names": {**names, "values": ["b", "a", "c"]}}, "sources are sorted and different"),
        ({"names": {**names, "values": ["a", "b"]}}, "counts has a number for each of its axes"),
        ({"names": {**names, "values": []}}, "there are sources"),
        ({"names": {**names, "values": [1, 2, 3]}}, "sources of a text type are text"),
        ({"names": {**names, "type": "<i8"}}, "sources of a type of numbers are numbers"),
        ({"names": {**names, "type": "<M8"}}, "'<M8' is a type of sources"),
        ({"names": {**names, "values": [[], "a", "b"]}}, "sources are text or numbers"),
        ({"evidence": {"number": "nan"}}, "the evidence of sources is finite"),
    ]:
        assert_refused(change(header, sources={**header["sources"], **values}), data, message)
    long = {"type": "<U9999", "values": [f"{number:04}" for number in range(2000)]}
    assert_refused(change(header, sources={**header["sources"], "names": long}), data, "names of sources are short")
    assert_refused(
        change(header, untwists=False), data, "where there are sources, posteriors of all classes are untwist"
    )


# Columns


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about: about.update(numbers=about["numbers"] * 2), "an array is named once"),
        (lambda about: about.update(categories=[[1, [0, 1]]]), "there is a number for each category"),
        (lambda about: about.update(numbers=[]), "a column that is not coded by its labels has at most 254"),
    ],
)
def test_numbers_of_categories_must_make_sense(change, message, contents):
    header, data = take_apart(contents["coded"])
    if not message.startswith(("an array", "there")):
        header["columns"]["categories"] = [[1, list(range(255))]]
    change(header["columns"])
    assert_refused(header, data, message)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e9])
def test_numbers_of_categories_are_finite(value, contents):
    header, data = take_apart(contents["coded"])
    number = header["columns"]["numbers"][0][1]
    assert_refused(header, overwrite(header, data, number, set_first(value)), "the numbers of categories are finite")


def test_dates_and_their_readings_are_kept():
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, 300)
    X = days.reshape(-1, 1)
    model = QuickClassifier(alpha=2.0, n_estimators=5, random_state=0).fit(X, days > np.datetime64("2021-06-01"))
    other = loads(dumps(model))
    assert other.model_.encoder.schema.readings == {0: Reading("date")}
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="column 0 held dates when fitted, and numbers now"):
        other.predict(np.arange(4.0).reshape(-1, 1))


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ([[0, "number", ";", "day"]], "in a known way"),
        ([[0, "word", ".", "day"]], "in a known way"),
        ([[0, "date", ".", "year"]], "in a known way"),
        ([[0, "date", ".", "day"], [0, "date", ".", "day"]], "a column is read in one way"),
        ([[1, "date", ".", "day"]], "a column of categories is not read as numbers"),
    ],
)
def test_readings_that_make_no_sense_are_refused(contents, readings, words):
    header, data = take_apart(contents["readings"])
    header["columns"]["readings"] = readings
    with pytest.raises(ValueError, match=words):
        loads(put_together(header, data))
