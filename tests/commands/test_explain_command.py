"""What explain says adds up, in a unit that is named: baseline and contributions to a score, which is a probability."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from helpers.learners import make_paper_model
from helpers.quick import QuickClassifier
from tests.helpers.command_line import untwist
from untwist import load, save

FEATURES = ["x", "z", "c"]


def write_table(n_classes):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=150), "z": rng.normal(size=150)}).round(3)
    frame["c"] = np.resize(["red", "blue", "red"], 150)
    names = np.array(["no", "yes", "later"])
    frame["y"] = names[((frame["x"] > 0) * 1 + (frame["z"] > 0.4) * (n_classes - 2)).to_numpy()]
    frame.to_csv("t.csv", index=False)
    return frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(frame, **settings):
    X = frame[FEATURES].astype({"c": "category"})
    if settings:
        settings |= {"n_estimators": 20, "max_depth": 2}
    make = make_paper_model if settings and "noise" not in settings else QuickClassifier
    save(make(random_state=0, **settings).fit(X, frame["y"]), "m.untwist")
    return load("m.untwist").model_, X


@pytest.mark.parametrize(
    ("n_classes", "settings", "unit"),
    [
        (2, {"alpha": 1.0, "link": "logit"}, "log-odds"),
        (2, {"alpha": 2.0}, "units of the score of the alpha-loss, alpha 2: 0 is one half"),
        (2, {"alpha": -2.0}, "units of the score of the alpha-loss, alpha -2: 0 is one half"),
        (2, {"alpha": 2.0, "noise": (0.1, 0.2)}, "units of the score of the alpha-loss, alpha 2: 0 is one half"),
        (3, {}, "logarithms of probabilities, up to a constant that the classes of a row share"),
        (3, {"alpha": 1.0, "link": "logit"}, "log-odds against all other classes"),
        (
            3,
            {"alpha": 1.5},
            "units of the score of the alpha-loss, alpha 1.5: 0 is one half, against all other classes",
        ),
    ],
    ids=[
        "log-odds",
        "other scores",
        "turned",
        "noise",
        "together",
        "against the rest",
        "other scores against the rest",
    ],
)
def test_baseline_and_contributions_add_up_to_a_score_that_is_a_probability(folder, capsys, n_classes, settings, unit):
    model, X = fit(write_table(n_classes), **settings)
    status, out, err = untwist(capsys, "explain", "m.untwist", "t.csv", "--line", 2, 5, "--top", 2, "--json")
    assert status == 0, err
    for row, one in zip((0, 3), json.loads(out), strict=True):
        parts = [one["baseline"], *(column["contribution"] for column in one["columns"])]
        parts.append(one["other_columns"]["contribution"])
        assert one["other_columns"]["columns"] == 1
        assert sum(parts) == pytest.approx(one["score"], abs=1e-9)
        assert one["unit"] == unit
        predicted = model.classes.tolist().index(one["prediction"])
        twisted = model.posterior.twisted(model.scores(model.encoder.encode(X.iloc[[row]], load("m.untwist"))))[0]
        assert one["probability_of_label"] == pytest.approx(twisted[predicted], abs=1e-9)
        if unit == "log-odds":
            assert 1 / (1 + np.exp(-one["score"])) == pytest.approx(one["probability_of_label"], abs=2e-2)


def test_the_sum_is_printed_with_its_unit(folder, capsys):
    fit(write_table(2), alpha=1.0, link="logit")
    lines = untwist(capsys, "explain", "m.untwist", "t.csv", "--line", 2, "--top", 1)[1].splitlines()
    assert re.fullmatch(r"line 2: (yes|no), \d+\.\d%", lines[0])
    assert re.fullmatch(r"  what speaks for (yes|no), in log-odds", lines[1])
    assert lines[2].endswith("  baseline, where no column is known")
    assert lines[4].endswith("  2 other columns")
    assert re.search(r"a row like this is labelled (yes|no) with probability \d+\.\d%", lines[5])
    *parts, total = [float(re.search(r"[+-]\d+\.\d{3}", line)[0]) for line in lines[2:]]
    assert sum(parts) == pytest.approx(total, abs=0.002)  # Each of four numbers is rounded to three places.


@pytest.mark.parametrize("n_classes", [2, 3])
def test_averages_have_a_unit_and_baselines(folder, capsys, n_classes):
    model, _ = fit(write_table(n_classes), alpha=1.0)
    found = json.loads(untwist(capsys, "explain", "m.untwist", "t.csv", "--json")[1])
    assert list(found["baselines"]) == model.classes.tolist()[1 if n_classes == 2 else 0 :]
    heading, *_, last = untwist(capsys, "explain", "m.untwist", "t.csv")[1].splitlines()
    assert heading.endswith(f"; in {found['unit']}:")
    if n_classes == 2:
        baseline = found["baselines"]["yes"]
        share = model.posterior.twisted(np.array([baseline]))[0, 1]
        assert last == f"Baseline, where no column is known: {baseline:+.3f}, which is {share:.1%} yes."
