"""The report without a browser: that it is well-formed and complete, that its numbers are those of the audit."""

import base64
import hashlib
import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import untwist.report
from helpers.quick import make_classifier
from helpers.report_fixtures import Page, audit_hostile_table, make_customers, read_text, unpack
from helpers.tickets import judge_by, make_components, make_tickets, measure_matrix, spread_noise
from untwist.audit import audit_labels, calibration, findings
from untwist.audit.reasons import describe_value
from untwist.audit.statements import write_conditions, write_counts
from untwist.display import format_probability, write_percent, write_range, write_share
from untwist.report import Peer, charts, compare, report, review
from untwist.report.markup import name_column
from untwist.report.noise import write_noise
from untwist.report.worksheet import LEAST_SHOWN_EFFECT
from untwist.text import clip, for_page, for_script
from untwist.theory.several_classes import SoftmaxLink

HERE = Path(untwist.report.__file__).parent
SECTIONS = ["summary", "noise", "review", "training", "calibration", "columns"]


@pytest.fixture(scope="module")
def page(shop):
    return report(shop, title="customers.csv")


@pytest.fixture(scope="module")
def pair():
    """The audit of tickets, judged by nearly their own noise, and which labels are wrong."""
    X, given, truth = make_tickets(1500)
    return judge_by(audit_labels(X, given), make_components(measure_matrix(given, truth))), given != truth


# ---- the page ----


def test_it_is_well_formed_and_complete(page):
    found = Page(page)
    ids = found.values("id")
    assert len(ids) == len(set(ids))
    assert [one for one in ids if one in SECTIONS] == SECTIONS
    assert set(found.values("aria-labelledby")) <= set(ids)
    links = found.values("href")
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert [link for link in links if not link.startswith("#")] == ["data:,"]
    assert found.values("src") == []
    assert found.values("style") == []  # the policy would refuse it
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert found.tags.count("h1") == found.tags.count("main") == found.tags.count("title") == 1
    assert found.tags.count("h2") == len(SECTIONS)
    for tag in ("header", "nav", "footer", "caption"):
        assert tag in found.tags
    described = {
        value for tag, name, value in found.attributes if tag == "svg" and name in ("aria-label", "aria-hidden")
    }
    assert all(described)
    assert found.tags.count("svg") == sum(tag == "svg" and name.startswith("aria") for tag, name, _ in found.attributes)


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(page):
    (policy,) = re.findall(r'Content-Security-Policy content="([^"]+)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "connect-src" not in rules
    for rule, tag in (("style-src", "style"), ("script-src", "script")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert "http://" not in page
    assert "https://" not in page


def test_the_same_audit_gives_the_same_page(page):
    table, labels, _ = make_customers()
    assert report(audit_labels(table, labels), title="customers.csv") == page


def test_numbers_are_those_of_the_audit(shop, page):
    text, suspects, noise, verdict = read_text(page), shop.suspects(), shop.noise, shop.verdict
    rate, limits = write_share(shop.noise_rate[0]), write_range(*shop.noise_rate[1:])
    rests_on = "if errors do not depend on features and the labels are judgements, not outcomes of chance"
    assert f"{rate} 1,500 labels, about {rate} wrong ({limits}), {rests_on}." in text
    assert f"wrong {rate} {limits}, {rests_on}" in text
    assert f"to review {len(suspects)} about {shop.wrong[suspects].sum():.0f} (" in text
    assert f"first 10 {write_counts(shop.expected_yield(suspects[:10]))}" in text
    for label, interval in shop.rate_by_label.items():
        rows = np.count_nonzero(shop.given == label)
        after = np.count_nonzero(shop.corrected() == label)
        assert f"{label} {rows} {write_percent(*interval)} {after}" in text
    for name, interval in zip(shop.classes, noise.list_class_shares(), strict=True):
        assert f"{write_percent(*interval)} of true {name} bear another label." in text
    assert verdict.sentence in text
    assert f"by {noise.evidence:,.1f} units of log-likelihood" in text
    best = shop.model.choice_.best
    assert f"What alpha = {best.alpha:g} means" in text
    assert f"kept: {best.n_rounds}" in text
    for one in shop.model.choice_.tried:
        is_best = (one.alpha, one.max_depth, one.drawn) == (best.alpha, best.max_depth, best.drawn)
        setting = f"alpha {one.alpha:g}, depth {one.max_depth}" + ", all rows and columns" * (one.drawn == 1)
        line = f"{setting}{' chosen' * is_best} {one.n_rounds} {one.loss:.4f} {write_share(one.error)}"
        assert line in text
    for column, share in zip(shop.table.X, shop.model.importances("gain"), strict=True):
        assert f"{column} {write_share(share)}" in text


def test_the_plain_table_has_the_first_suspects_with_their_reasons(shop, page):
    (body,) = re.findall(r"<table id=suspects>.*?<tbody>(.*?)</tbody>", page, re.S)
    lines = re.findall(r"<tr>.*?</tr>", body)
    suspects = shop.suspects()
    assert len(lines) == review.MOST_PLAIN < len(suspects)
    for place in (0, 1, len(lines) - 1):
        one = shop.explain(suspects[place])
        text = read_text(lines[place])
        assert text.startswith(
            f"{one.row} {one.given} {one.predicted} {format_probability(one.wrong)} {one.n_disagreeing} of 20"
        )
        for reason in one.reasons:
            value, usual = describe_value(reason.value), describe_value(reason.usual)
            said = f"{reason.column} is {value}, usually {usual} +{reason.effect:.1f}"
            assert (said in text) == (reason.effect >= LEAST_SHOWN_EFFECT)


def test_rows_have_the_names_they_are_given(shop):
    lines = np.arange(len(shop.given)) + 1_234_567
    first = shop.suspects()[0]
    page = report(shop, title="t", rows=lines, row_name="line")
    assert f"<th scope=row>{lines[first]}</th>" in page
    assert unpack(page)["name"][0] == lines[first]
    assert unpack(page)["row"][0] == first
    assert "the first 50 lines" in page
    named = report(shop, title="t", rows=[f"id-{i}" for i in lines], positions=np.arange(len(lines)) * 2)
    assert f"<th scope=row>id-{lines[first]}</th>" in named
    assert unpack(named)["name"][0] == f"id-{lines[first]}"
    assert unpack(named)["row"][0] == 2 * first


@pytest.mark.parametrize("name", ["rows", "table", "positions"])
def test_what_is_not_one_for_each_row_is_refused(shop, name):
    with pytest.raises(ValueError, match=f"{name} must be one for each of the 1500 labels, got 3"):
        report(shop, title="t", **{name: pd.DataFrame({"a": [1, 2, 3]})})


@pytest.mark.slow
def test_suspects_that_are_asked_for_come_in_order_of_doubt(shop, clean):
    asked = [5, 3, *shop.suspects()[:2]]
    page = report(shop, title="t", suspects=asked)
    assert unpack(page)["row"][:4] == [row for row in shop.ranking if row in asked]
    assert unpack(page)["n"] == 4
    assert "The rows that were asked for" in page
    some = report(clean, title="t", suspects=clean.suspects(budget=5))
    text = read_text(some)
    assert "The rows that were asked for, the most doubtful first: 5, 0 to 5 of them wrong." in text
    assert "to review 5 0 to 5 of them wrong" in text
    assert "list: 0 to 5 of them wrong." in text
    assert "first 5 0 to 5" in text
    assert "wrong labels found" not in text
    assert unpack(some)["most"] == math.ceil(clean.verdict.upper_bound.high * 569)
    assert not unpack(some)["found"]
    many = read_text(report(clean, title="t", suspects=clean.suspects(budget=100)))
    most = f"0 to {clean.verdict.most_wrong} of them wrong if errors do not depend on features"
    assert many.count(most) == 3  # The tile, the list, and where to begin.
    assert "What to expect if errors do not depend on features" in many
    with pytest.raises(ValueError, match="rows must be indices"):
        report(shop, title="t", suspects=[len(shop.given)])


def test_no_noise_is_said_plainly(clean):
    page = report(clean, title="cancer")
    text = read_text(page)
    limit = write_share(clean.verdict.upper_bound.high)
    bound = f"at most {limit} are wrong if errors do not depend on features"
    sentence = f"569 labels: no sign of wrong labels; {bound}; errors that follow the features cannot be seen without"
    assert f"No sign {sentence} looking at rows." in text
    assert f"No row is listed. {sentence}" in text
    assert "id=suspects" not in page
    assert f"may be wrong 0 % to {limit} if errors do not depend on features" in text
    for one in clean.verdict.by_class:
        assert f"{one.name} {write_share(one.high)}" in text
    assert len(page) < 100_000


def test_nothing_is_ever_called_clean(clean):
    """Noise of one class only may show in too few rows, and errors may follow the features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    audit = audit_labels(X, np.digitize(X[:, 0], [-0.7, 0.7]))
    assert not audit.noise.found
    for one in (audit, clean):
        text = read_text(report(one, title="t"))
        assert "Clean" not in text
        assert "needs correcting" not in text
        assert text.count("at most ") == text.count(one.verdict.bound) + 1  # The caption of the bounds by class.
        assert f"another label at most{write_conditions(one.verdict.upper_bound.rests_on)}" in text


def test_noise_that_cannot_be_told_from_hard_data_is_not_claimed():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5))
    audit = audit_labels(X, rng.random(400) < 1 / (1 + np.exp(-0.8 * X[:, 0])))
    assert not audit.noise.found
    text = read_text(report(audit, title="hard"))
    assert "Undecided 400 labels: whether labels are wrong or rows are hard cannot be told from these data" in text


def test_more_than_two_classes(three):
    page = report(three, title="three")
    text = read_text(page)
    assert "3 classes, 5 columns" in text
    assert "column 0 is" in text
    assert "what the model finds likeliest" in text
    alone = not isinstance(three.model.model_.link, SoftmaxLink)
    assert ("each class against the rest" in text) == alone
    assert ("3, boosted together" in text) != alone


@pytest.mark.slow
def test_the_matrix_is_a_table_with_its_numbers(pair):
    audit, _ = pair
    page = report(audit, title="tickets")
    text = read_text(page)
    (table,) = re.findall(r"<table class=heat>.*?</table>", page, re.S)
    body = re.findall(r"<tr><th scope=row>(.*?)</th>(.*?)</tr>", table, re.S)
    assert [name for name, _ in body] == audit.classes.tolist()
    for j, (_, cells) in enumerate(body):
        *shares, last = re.findall(r'<td class="?number ?([^">]*)"?>(.*?)</td>', cells, re.S)
        assert [share for _, share in shares] == [f"{100 * one:.0f}" for one in audit.noise.matrix[j]]
        assert [kind == "own" for kind, _ in shares] == [k == j for k in range(4)]
        rate = audit.verdict.by_class[j]
        assert write_range(rate.low, rate.high) in read_text(last[1])
    assert table.count("heat5") == 1  # The pair that is confused most.
    first = audit.confusions()[0]
    assert (first.truth, first.label) == ("billing", "bug")
    assert f"true class billing labelled bug: {write_share(first.share)}" in text
    n_suspects = np.count_nonzero(
        (audit.given[audit.suspects()] == "bug") & (audit.predicted[audit.suspects()] == "billing")
    )
    numbers = write_percent(first.share, first.low, first.high)
    assert f"billing → bug {numbers} {first.rows:,.0f} {n_suspects}" in text
    suspects = audit.suspects()
    assert f"first: {len(suspects)}, about {audit.wrong[suspects].sum():,.0f} (" in text


def test_many_classes_have_pairs_and_no_matrix(pair):
    audit, _ = pair
    many = findings.collect_findings(audit)
    names = np.array([f"class {i:02d}" for i in range(13)])
    noise = make_components(spread_noise(13, 0.2))
    posterior = np.full((len(audit.given), 13), 0.01)
    rows = np.arange(len(audit.given))
    posterior[rows, rows % 13] = 0.88
    given = names[np.where(rows % 5, rows, rows // 5) % 13]
    wide = replace(
        audit,
        classes=names,
        given=given,
        predicted=given,
        posterior=posterior,
        noise=noise,
        rate_by_label=dict.fromkeys(names.tolist(), (0.2, 0.1, 0.3)),
    )
    counted = [findings.CountedConfusion(one, 0) for one in wide.confusions()]
    shown = write_noise(replace(many, audit=wide, confusions=counted, **_count(wide)))
    assert "class=heat" not in shown
    assert "often labelled" not in shown
    assert len(re.findall("class \\d\\d → class \\d\\d", shown)) == 12


def _count(audit):
    rows = np.full(len(audit.classes), 10)
    return {"n_rows_given": rows, "n_rows_corrected": rows}


@pytest.mark.parametrize("settings", [{"noise": None}, {"noise": (0.2, 0.1)}, {"alpha": 0.7}, {"alpha": 3.0}])
@pytest.mark.thinned(3)
def test_what_was_given_is_not_said_to_be_found(settings):
    table, labels, _ = make_customers(600)
    model = make_classifier(random_state=0, **settings).fit(table, labels)
    text = read_text(report(audit_labels(table, labels, model), title="t"))
    if settings.get("noise") == (0.2, 0.1):
        assert "if the noise that was given is right" in text
        assert "there are no intervals" in text
    if "alpha" in settings:
        assert ("Below 1 it counts for more" in text) == (settings["alpha"] < 1)
        assert ("Above 1 it counts for less" in text) == (settings["alpha"] > 1)
    allows = "Probabilities follow from alpha alone" not in text
    assert allows == (settings.get("noise") == (0.2, 0.1))
    assert ("it allows for the noise" in text) == allows


@pytest.mark.parametrize(
    "labels",
    [[False, True], [-1.0, 2.0], [0, 10**12], ["", "ja 是"], [1, 2, 3], np.array([3, 4], dtype=np.uint8)],
    ids=str,
)
@pytest.mark.thinned(3)
def test_labels_of_any_type(labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    truth = np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) - 1) if len(labels) > 2 else [0])
    noisy = np.where(rng.random(200) < 0.2, rng.integers(0, len(labels), 200), truth)
    audit = audit_labels(X, np.asarray(labels)[noisy])
    page = report(audit, title="t", suspects=audit.suspects(budget=20))
    text = read_text(page)
    for label in audit.classes.tolist():
        assert (str(label) or "(empty)") in text


def test_weights_and_rows_without_weight():
    table, labels, _ = make_customers(600)
    weight = np.arange(600) % 3
    audit = audit_labels(table, labels, sample_weight=weight)
    assert "Shares count each row with its sample weight." in report(audit, title="t", peers={"a": Peer(0.9, 0.5, 0.8)})


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "sparse"])
def test_tables_of_other_kinds(kind):
    table, labels, _ = make_customers(300)
    numbers = table.drop(columns=["city", "plan"])
    if kind == "sparse":
        X = sparse.csr_array(numbers.fillna(0.0).to_numpy(float))
    else:
        frames = pytest.importorskip(kind)
        X = frames.DataFrame(numbers.to_dict("list")) if kind == "polars" else frames.table(numbers.to_dict("list"))
    audit = audit_labels(X, labels)
    text = read_text(report(audit, title="t", suspects=audit.suspects(budget=5), peers=compare(audit)))
    assert ("column 1" if kind == "sparse" else "monthly fee") in text


def test_a_handful_of_rows():
    X = np.arange(12.0)[:, None]
    audit = audit_labels(X, (X[:, 0] > 5).astype(int))
    Page(report(audit, title="t", suspects=audit.suspects(budget=3)))


def test_a_table_that_tells_nothing():
    with pytest.warns(UserWarning, match="nothing but the shares of the classes can be learned"):
        audit = audit_labels(np.zeros((50, 2)), np.arange(50) % 2)
    assert "No column helps to predict the labels." in report(audit, title="t")


# ---- size ----


@pytest.mark.slow
def test_very_wide_tables_show_the_columns_that_matter():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 400)), columns=[f"measurement {i}" for i in range(400)])
    noisy = (X.iloc[:, 7] > 0) ^ (rng.random(300) < 0.15)
    audit = audit_labels(X, noisy.astype(int))
    page = report(audit, title="wide")
    assert len(page.encode()) < 300_000
    text = read_text(page)
    assert "measurement 7" in text
    assert "All other columns (388) together" in text


@pytest.mark.slow
def test_many_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    labels = np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(1, 30) / 30))
    text = read_text(report(audit_labels(X, labels), title="t"))
    assert "Of each true class, how much bears another label at most if errors do not depend on features" in text
    assert "... and less of the 5 other classes." in text


# ---- what comes from data is harmless ----


def test_hostile_data_stay_text():
    audit, names = audit_hostile_table()
    title = "</title><script>alert(5)</script>" + " & very long" * 50
    page = report(audit, title=title, rows=names, row_name="<i>line</i>", peers={"<b>x</b>": Peer(0.5, 1.0, 0.5)})
    page.encode()  # no half of a pair is left
    found = Page(page)
    assert found.tags.count("script") == 3
    assert not {"b onmouseover", "i", "img", "iframe"} & set(found.tags)
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert "<script>alert(3)</script>" in found.text
    assert "</title><script>alert(5)</script> & very" in found.text
    assert "\u202e" not in page
    assert "\x00" not in page
    (config,) = re.findall(r"id=review-config>(.*?)</script>", page)
    assert json.loads(config)["classes"] == [str(label) for label in audit.classes.tolist()]
    assert unpack(page)["name"][:3] == [clip(names[row]) for row in audit.suspects()[:3]]


def test_json_for_a_script_survives_and_cannot_end_it():
    value = ["</script>", "<!--", "]]>", "&amp;", "\u2028", 'quote " and \\', {"a": None, "b": [1.5, True]}]
    text = for_script(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028") & set(text)


def test_text_is_clipped_by_the_room_it_takes():
    assert clip("short") == "short"
    assert clip("") == clip(" \n") == "(empty)"
    assert clip("a\tb\n c") == "a b c"
    assert clip("x" * 100, 10) == "x" * 9 + "…"
    assert clip("很" * 100, 10) == "很" * 4 + "…"
    assert clip("a\ud800b\u202ec\x07") == "a�b�c�"
    assert for_page('<a href="x">') == html.escape('<a href="x">')


def test_values_and_names_in_words():
    assert [describe_value(None), describe_value(float("nan")), describe_value(1.23456), describe_value("x")] == [
        "missing",
        "missing",
        "1.235",
        "x",
    ]
    assert [name_column(3), name_column("age")] == ["column 3", "age"]
    assert [format_probability(1.0), format_probability(0.991), format_probability(0.5), format_probability(0.001)] == [
        "over 99 %",
        "over 99 %",
        "50 %",
        "under 1 %",
    ]


# ---- charts ----


def test_ticks_are_round_and_within():
    assert charts.find_ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert charts.find_ticks(0.232, 0.268, most=4) == [0.24, 0.25, 0.26]
    assert charts.find_ticks(1, 60) == [20, 40, 60]
    assert charts.find_ticks(0, 7) == [0, 2, 4, 6]


def test_a_waffle_has_as_many_squares_as_labels_of_a_hundred():
    found = charts.draw_waffle((0.2, 0.154, 0.178), "words")
    assert [found.count(f"class={kind} ") for kind in ("wrong", "maybe", "right")] == [15, 3, 82]


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [0.0, 0.0, 0.0], [0.7, 0.4, 0.41]])
def test_a_curve_may_be_short_or_flat(values):
    assert "NaN" not in charts.draw_curve(values, 1, "loss", "words")
    assert "nan" not in charts.draw_curve(values, len(values), "loss", "words")


def test_charts_keep_within_their_frame(shop):
    inside = charts.draw_calibration(
        calibration.measure_reliability(shop),
        calibration.trace_clean_posterior(shop),
        calibration.measure_spread(shop),
        "words",
    )
    for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", inside):
        assert 0 <= float(x) <= 400
        assert 0 <= float(y) <= 372


# ---- colours ----


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(scheme):
    style = (HERE / "style.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", blocks[0] if scheme == "light" else blocks[1]))
    pairs = [(ink, back) for ink in ("ink", "muted", "noisy", "clean") for back in ("card", "page")]
    for ink, back in [*pairs, ("card", "clean"), ("ink", "faint"), ("muted", "faint")]:
        one, two = sorted((luminance(colours[ink]), luminance(colours[back])))
        assert (two + 0.05) / (one + 0.05) >= 4.5, (ink, back)
