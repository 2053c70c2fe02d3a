"""The demo: what it audits, compares and shows."""

import numpy as np
import pandas as pd
import pytest

from experiments import demo


def test_the_demo_does_without_xgboost(monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    paper = ["PILBoost, alpha = 1.1", "PILBoost, alpha = 2", "PILBoost, alpha = 4"]
    assert list(demo.list_methods()) == ["untwist, as it comes", *paper, "random forest"]


def test_the_demo_measures_every_method(monkeypatch):
    monkeypatch.setattr(demo, "ROUNDS", 20)
    accuracy = demo.measure_split(0.3, seed=0)
    assert list(accuracy) == list(demo.list_methods())
    assert all(0.5 < value <= 1 for value in accuracy.values())


def test_the_best_at_the_highest_rate_comes_first():
    table = demo.format_table({"a": np.array([[0.9, 0.9]] * 3), "b": np.array([[0.5, 0.5], [0.4, 0.6], [1.0, 1.0]])})
    head, first, second = table.splitlines()
    assert head.split() == ["wrong", "training", "labels", "0%", "20%", "30%"]
    assert first == "  b                       0.500 ± 0.000   0.500 ± 1.271   1.000 ± 0.000"
    assert second == "  a                       0.900 ± 0.000   0.900 ± 0.000   0.900 ± 0.000"


def test_the_noisy_table_has_as_many_wrong_labels_as_it_says(tmp_path):
    demo.write_noisy_table(tmp_path / "demo.csv")
    table = pd.read_csv(tmp_path / "demo.csv")
    assert set(table["diagnosis"]) == {"benign", "malignant"}
    assert np.mean(table["diagnosis"] != table["true diagnosis"]) == pytest.approx(0.2, abs=1 / len(table))


def test_the_demo_ends_with_the_table_and_the_page(monkeypatch, tmp_path, capsys):
    def audit_two_rows(options):
        rows = pd.read_csv(options.table)
        assert (options.label, options.drop, options.peers) == ("diagnosis", ["true diagnosis"], True)
        is_wrong = rows["diagnosis"] != rows["true diagnosis"]
        pd.concat([rows[is_wrong][:2], rows[~is_wrong][:1]]).to_csv(options.suspects)
        options.output.write_text("a page")

    monkeypatch.setattr(demo.audit, "main", audit_two_rows)
    monkeypatch.setattr(demo, "measure", lambda runs: {"a": np.full((3, runs), 0.75)})
    demo.main(["--runs", "3", "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "114 labels of this table were flipped. Of 3 suspects, 2 are among them." in shown
    assert "over 3 splits" in shown
    assert "0.750 ± 0.000" in shown
    assert shown.endswith(f"{tmp_path / 'demo.html'}\n")
