"""The demo: what it compares, measures and shows."""

import numpy as np

from experiments import demo


def test_the_demo_does_without_xgboost(monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    paper = ["PILBoost, alpha = 1.1", "PILBoost, alpha = 2", "PILBoost, alpha = 4", "AdaBoost"]
    assert list(demo.list_methods()) == ["untwist, as it comes", *paper]


def test_the_demo_measures_and_reports(monkeypatch):
    monkeypatch.setattr(demo, "ROUNDS", 20)
    accuracy = demo.measure_split(0.3, seed=0)
    assert list(accuracy) == list(demo.list_methods())
    assert all(0.5 < value <= 1 for value in accuracy.values())
    rows = demo.rank({"a <b>": np.array([0.3, 0.5]), "c": np.array([0.9, 0.9])})
    assert [row[0] for row in rows] == ["c", "a <b>"]
    page = demo.render(rows, rate=0.3, runs=2)
    assert "a &lt;b&gt;" in page
    assert "30%" in page
    assert "http:" not in page
    assert "https:" not in page
