"""The notebooks run from top to bottom, and each shows what it says."""

import re
import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def run():
    """Run a notebook and return what it defined; a warning is an error here, as everywhere in the tests."""
    yield lambda name: runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    pyplot.close("all")


def test_first_steps(run):
    """Untwist beats a believer by far, its interval holds the truth, and what it doubts most is wrong."""
    made = run("first_steps")
    test = made["X_test"], made["truth_test"]
    assert made["model"].score(*test) > made["believer"].score(*test) + 0.05
    low, high = made["model"].noise_.interval_pos
    assert low < 0.3 < high
    assert made["n_wrong"] >= 45
    assert abs(made["audit"].expect_wrong(made["doubtful"]) - made["n_wrong"]) < 5
    assert made["of_truth"].std() > made["of_labels"].std()
    np.testing.assert_array_equal(made["again"].predict_proba(test[0]), made["model"].predict_proba(test[0]))


@pytest.mark.slow
def test_coming_from_xgboost(run):
    """Nothing is lost where labels are clean, much is won where a fifth or more of them are wrong."""
    made = run("coming_from_xgboost")
    accuracy = {name: np.array(scores) for name, scores in made["accuracy"].items()}
    ours, careful, as_it_comes = accuracy.values()
    assert ours[0] > max(careful[0], as_it_comes[0]) - 0.02
    assert (ours[2:] > np.maximum(careful, as_it_comes)[2:] + 0.02).all()
    test = made["X_test"], made["y_test"]
    assert made["after"].score(*test) > made["before"].score(*test) + 0.05
    cost = {name: made["log_loss"](test[1], model.predict_proba(test[0])) for name, model in
            (("before", made["before"]), ("after", made["after"]))}  # fmt: skip
    assert cost["after"] < cost["before"] - 0.1
    assert made["given"].score(*test) > made["before"].score(*test)
    test = made["pixels_test"], made["is_odd_test"]
    assert made["stayed"]["alpha-loss"].score(*test) > made["stayed"]["log-loss"].score(*test) + 0.02


def test_cleaning_a_table(run):
    """Nearly all wrong labels are in the review, about as many as were expected, and everybody profits."""
    made = run("cleaning_a_table")
    assert made["low"] < len(made["flipped"]) / len(made["labels"]) < made["high"]
    n_found = made["decisions"].relabelled.sum()
    assert n_found >= 0.9 * len(made["flipped"])
    assert abs(made["audit"].expect_wrong(made["rows"]) - n_found) < 8
    assert (made["cleaned"] != made["truth"]).sum() == len(made["flipped"]) - n_found
    scores = made["scores"]
    believer = "HistGradientBoostingClassifier"
    assert scores[believer, "cleaned"] > scores[believer, "as given"] + 0.04
    assert scores["UntwistClassifier", "as given"] > scores[believer, "as given"] + 0.03
    assert "Diagnoses to look at" in made["page"]


@pytest.mark.slow
def test_what_alpha_does(run):
    """The alpha-loss undoes all three twists, the focal loss no blunting, the Super Loss nothing but that."""
    made = run("what_alpha_does")
    undone = {key for key, found in made["found"].items() if found.reaches(0.001)}
    blunted, too_sure, _ = made["twists"]
    alpha = {(kind, "alpha-loss") for kind in made["twists"]}
    assert undone == alpha | {(blunted, "Super Loss"), (too_sure, "focal loss")}
    shares = made["shares"]
    above = shares > 0.5
    reached = made["answers"]
    assert (reached["focal loss"][:, above] <= shares[above] + 1e-9).all()
    assert (reached["focal loss"][:, above] >= 0.5).all()
    assert (reached["Super Loss"][:, above] >= shares[above] - 1e-9).all()
    assert np.ptp(reached["alpha-loss"], axis=0).min() > 0.99
    assert made["best"] > 1
    left = np.abs(made["tilt"](made["noise"](made["posteriors"]), made["best"]) - made["posteriors"])
    assert left.mean() < 0.3 * np.abs(made["noise"](made["posteriors"]) - made["posteriors"]).mean()
    assert np.ptp(made["crossed"]) > 0.2


@pytest.mark.slow
def test_several_classes_and_sources(run):
    """Both confusions and the bad source are named, no other is, and the audit beats most votes."""
    made = run("several_classes_and_sources")
    named = {(one.truth, one.label) for one in made["audit"].confusions() if one.stands_out}
    assert named == {("seven", "one"), ("three", "eight")}
    assert (made["corrected"] != made["truth"]).sum() < 20
    assert [one.name for one in made["rated"] if one.stands_out] == ["Dan"]
    held = [one.low <= share / 100 <= one.high for one, share in zip(made["rated"], made["done"], strict=True)]
    assert sum(held) >= 4
    assert made["share_found"] > 0.9
    assert made["share_truly_wrong"] > 0.9
    assert made["by_audit"] > made["by_votes"] + 0.03
    from_the_worst = made["audit_of_votes"].sources.to_frame().index
    assert set(from_the_worst[:3]) == {"Ann", "Ben", "Cleo"}


def test_a_custom_loss(run):
    """The closed forms agree with the numerical ones, and the improper power has the better probabilities."""
    made = run("a_custom_loss")
    assert [bool(made["checks"][power]["proper"]) for power in (2.0, 1.5)] == [True, False]
    assert all(made["checks"][1.5][letter] for letter in "MDSE")
    quick, numerical, shares = made["quick"], made["numerical"], made["shares"]
    for name in ("partial_pos_derivative", "partial_neg_derivative", "tilted_estimate", "bayes_risk"):
        # The base class differentiates numerically, to about 1e-9.
        np.testing.assert_allclose(getattr(quick, name)(shares), getattr(numerical, name)(shares), atol=1e-8)
    assert made["explored"].reaches()
    assert made["costs"][1.5] < made["costs"][2.0] - 0.08
    test = made["X_test"], made["y_test"]
    plain, sure = made["models"].values()
    assert (plain.predict(test[0]) == sure.predict(test[0])).mean() > 0.95
    assert plain.predict_proba(test[0]).max() < 0.9 < sure.predict_proba(test[0]).max()


def test_every_notebook_has_its_test():
    assert {f"test_{script.stem}" for script in SCRIPTS} <= set(globals())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_links_of_notebooks_lead_somewhere(script):
    for target in re.findall(r"\]\(([^)\s]+)\)", script.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (script.parent / target.split("#")[0]).exists(), target


def test_notebooks_are_in_the_menu_and_on_the_page_of_examples():
    menu, page = ((ROOT / name).read_text() for name in ("mkdocs.yml", "docs/examples.md"))
    for script in SCRIPTS:
        assert f" examples/{script.stem.replace('_', '-')}.md\n" in menu
        assert f"](../examples/{script.name})" in page
