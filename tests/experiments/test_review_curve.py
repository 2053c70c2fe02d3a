"""The program that draws accuracy over reviews: its bookkeeping, and one data set from end to end."""

import numpy as np
import pytest

from experiments.benchmarks import review_curve
from experiments.benchmarks.review_curve import ALL, LABELS, MODEL, RANDOM, SHARES, CurveRow, Job, Reviewing

pytest.importorskip("pandas", reason="data sets are data frames")


def test_reviews_are_counted_along_straight_lines_between_rounds():
    progress = np.interp(SHARES, [0.0, 0.2, 1.0], [0.0, 0.8, 1.0])
    for start, goal in ((0.5, 0.9), (0.4, 0.1)):  # Accuracy rises, log-loss falls.
        values = start + (goal - start) * progress
        assert review_curve.count_reviews(values, start, goal, 0.5) == pytest.approx(0.125)
        assert review_curve.count_reviews(values, start, goal, 0.9) == pytest.approx(0.6)
        assert review_curve.count_reviews(values, start, goal, 0.99) == np.inf
        assert review_curve.count_reviews(values, start - 0.01 * (goal - start), goal, 0.0) == 0.0


def test_the_oracle_says_what_is_true():
    X, given, truth = np.zeros((4, 1)), np.array([0, 1, 0, 1]), np.array([0, 0, 0, 1])
    state = Reviewing(X, given, truth, np.zeros(4, dtype=bool)).review(np.array([1, 3]))
    decisions = state.decide()
    assert decisions.rows.tolist() == [1, 3]
    assert decisions.decision.tolist() == ["relabel", "keep"]
    assert state.labels.tolist() == [0, 0, 0, 1]


def test_orders_that_not_all_splits_have_are_left_out_of_the_mean():
    def make_rows(data, orders):
        finished = [(order, share) for order in orders for share in SHARES] + [(ALL, 1.0)]
        return [CurveRow(data, "t", 0, order, share, 10, 1, 2, 1, 0.5, 0.7) for order, share in finished]

    rows = make_rows("whole", [MODEL, RANDOM]) + make_rows("half", [MODEL])
    curves, _, n_splits = review_curve.draw_curves(rows)
    assert (list(curves), n_splits) == ([MODEL, RANDOM], 1)
    with pytest.raises(ValueError, match="no split has been finished by every order"):
        review_curve.draw_curves(make_rows("half", [MODEL]) + make_rows("other", [RANDOM]))


@pytest.mark.slow
def test_a_data_set_is_reviewed_in_rounds(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(review_curve, "SHARES", (0.0, 0.1))
    options = ["--sets", "cancer", "--twists", "symmetric-0.1", "--rows", "150", "--out", str(tmp_path / "c.csv")]
    review_curve.main([*options, "--orders", MODEL, LABELS, RANDOM])
    out = capsys.readouterr().out
    assert "Reviews needed" in out
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 2 + 1
    assert all(line.endswith(",") for line in lines[1:]), "a row has an error"


def test_errors_are_rows():
    rows = review_curve.judge(Job("no such set", "none", 0, MODEL, several=False), folder=None, max_rows=10)
    assert [row.share for row in rows] == list(SHARES)
    assert all("no such set" in row.error for row in rows)
