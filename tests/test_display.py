"""Short forms of objects, and what notebooks show of them: markup stays text, numbers are those of the object."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from untwist import PILBoostClassifier, UntwistClassifier, display
from untwist.audit import audit_labels
from untwist.display import write_percent, write_range, write_share
from untwist.noise.several_classes import SeveralClassesNoise

HOSTILE = "<script>alert('1')</script>"


class Reader(HTMLParser):
    """What a browser sees of a fragment: its tags, which must close, and its text."""

    def __init__(self, fragment):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(fragment)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        assert not {"id", "class", "onclick", "src", "href"} & {name for name, _ in attributes}
        if tag not in ("br", "rect", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "path"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    truth = X[:, 0] + X[:, 1] > 0
    source = np.array([HOSTILE, "b", "c", "d"])[np.arange(600) % 4]
    flip = (rng.random(600) < 0.4) & (source == HOSTILE)
    return audit_labels(X, np.where(truth ^ flip, HOSTILE, "plain"), source=source)


def list_shown(audit):
    model = audit.model
    return [audit, audit.noise, model.choice_, audit.context.by_source]


@pytest.mark.parametrize("name", ["shop", "three", "hostile"])
def test_short_forms_are_short(name, request):
    audit = request.getfixturevalue(name)
    fitted = audit.model.model_
    explanation = audit.explain(int(audit.ranking[0]))
    for one in [
        *list_shown(audit),
        fitted,
        fitted.out_of_fold,
        fitted.ensembles[0],
        fitted.by_class("forest"),
        explanation,
    ]:
        if one is not None:
            assert repr(one).startswith(type(one).__name__ + "(")
            assert len(repr(one)) < 300
            assert "\n" not in repr(one)


def test_the_short_form_of_an_audit_has_its_numbers(shop, three):
    verdict = shop.verdict
    assert repr(shop) == (
        f"LabelAudit({len(shop.given):,} labels of 2 classes: {write_share(verdict.share.value)} wrong "
        f"({write_range(verdict.share.low, verdict.share.high)}), if errors do not depend on features and the labels "
        f"are judgements, not outcomes of chance; {verdict.suspects})"
    )
    assert verdict.suspects.startswith(f"{len(shop.suspects())} suspects, about ")
    assert f"{len(three.suspects())} suspects" in repr(three)


def test_without_noise_the_short_form_says_what_is_not_excluded(shop):
    silent = {"noise": replace(shop.noise, found=False), "wrong": np.zeros(len(shop.given))}
    quiet = replace(shop, **silent)
    bound = write_share(quiet.verdict.upper_bound.high)
    assert repr(quiet).endswith(f"undecided, at most {bound} wrong if errors do not depend on features)")
    shown = Reader(quiet._repr_html_())
    assert "suspects(budget=50)" in shown.text
    assert "svg" not in shown.tags  # Nothing is suspected, so that there is nothing to draw.


@pytest.mark.parametrize("name", ["shop", "three", "hostile"])
def test_fragments_stand_by_themselves_and_markup_in_data_stays_text(name, request):
    audit = request.getfixturevalue(name)
    for one in list_shown(audit):
        if one is None:
            continue
        shown = Reader(one._repr_html_())
        assert shown.tags <= {"div", "b", "br", "table", "tr", "th", "td", "span", "svg", "rect", "path"}
    if name == "hostile":
        assert HOSTILE[:20] in Reader(audit._repr_html_()).text
        assert HOSTILE[:20] in Reader(audit.context.by_source._repr_html_()).text
        assert HOSTILE[:20] in Reader(audit.noise.write_html(audit.classes)).text


def test_the_fragment_of_an_audit_has_rates_and_suspects(shop):
    text = Reader(shop._repr_html_()).text
    for label, (rate, low, high) in shop.rate_by_label.items():
        assert f"{label}{write_percent(rate, low, high)}" in text
    assert all(str(row) in text for row in shop.suspects()[:5].tolist())
    reviewed = shop.ranking[: 2 * len(shop.suspects())]
    assert f"first {len(reviewed):,} rows reviewed: about {shop.expect_wrong(reviewed):,.0f} (" in text
    assert "of labels that say leaves" not in text  # The table says the same.


def test_the_fragment_of_several_classes_has_the_matrix():
    matrix = np.array([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])
    shown = SeveralClassesNoise.from_matrix(matrix)._repr_html_()
    cells = re.findall(r"rgba\(217,130,43,([.\d]+)\)\">([.\d]+) %", shown)
    assert [float(share) / 100 for _, share in cells] == pytest.approx(matrix.ravel())
    # The largest entry off the diagonal has the strongest colour, and the diagonal has none.
    assert [float(shade) for shade, _ in cells] == pytest.approx([0, 0.6, 0, 0, 0, 0, 0.3, 0.3, 0])
    many = SeveralClassesNoise.from_matrix(np.eye(20))._repr_html_()
    assert "and 8 more classes" in Reader(many).text


def test_the_classifier_adds_to_the_diagram(shop):
    model = shop.model
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert len(bundle["text/html"]) == pytest.approx(len(model._repr_html_()), abs=20)  # Ids of diagrams are counted.
    assert "sk-container" in bundle["text/html"]
    assert "What was chosen" in bundle["text/html"]
    assert model.noise_.write_html(model.classes_) in bundle["text/html"]
    with config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}
    unfitted = UntwistClassifier()._repr_mimebundle_()["text/html"]
    assert "What was chosen" not in unfitted
    assert "UntwistClassifier" in make_pipeline(StandardScaler(), model)._repr_html_()


def test_a_classifier_with_given_settings_has_nothing_chosen(shop):
    X = np.arange(20.0)[:, None]
    model = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1).fit(X, X[:, 0] > 9)
    assert model._repr_html_().startswith("<style")
    assert "What was chosen" not in model._repr_html_()


def test_the_chosen_candidate_is_marked(shop):
    choice = shop.model.choice_
    marked = re.findall(r"font-weight:600\">([^<]*)</td>", choice._repr_html_())
    assert marked[0].startswith(f"alpha {choice.best.alpha:g}, depth {choice.best.max_depth}")
    rows = re.findall(r"<tr", choice._repr_html_())
    assert len(rows) == 1 + len(choice.tried)


def test_bars_end_where_shares_do():
    drawn = display.write_bar(0.25, 0.1, 0.5, longest=0.5)
    assert 'width="60.0"' in drawn
    assert "M24.0 5.0H120.0" in drawn
    assert 'width="120.0"' in display.write_bar(3.0)  # Never beyond its frame.


def test_curves_without_anything_are_not_drawn():
    assert display.write_curve([], "none") == display.write_curve([(0.0, 0.0), (5.0, 0.0)], "none") == ""
    assert "M0.0 90.0L260.0 2.0" in display.write_curve([(0.0, 0.0), (10.0, 4.0)], "words")
