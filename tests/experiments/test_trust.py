"""The programs that judge what is claimed: worlds are what they say, rows are kept, tables say first what is lost."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from experiments import results
from experiments.trust import annotators, program, slices, sources
from experiments.trust.annotators import AnnotatorsRow
from experiments.trust.parts import Part
from experiments.trust.slices import SlicesRow
from experiments.trust.sources import SourcesRow
from experiments.trust.worlds import FOUR_WORLDS, TWO_WORLDS, flip, simulate
from untwist.commands.main import run_program


def run(*arguments):
    return run_program(program.NAME, program.main, list(arguments))


# ---- worlds ----


@pytest.mark.parametrize("world", [*TWO_WORLDS, *FOUR_WORLDS, "nothing", "four-nothing"])
def test_classes_follow_the_posterior_of_their_world(world):
    n = 40_000
    X, y, posterior = simulate(world, n, np.random.default_rng(0))
    assert X.shape == (n, 10)
    assert posterior.shape == (n, 4 if world.startswith("four") else 2)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-12)
    is_class = np.eye(posterior.shape[1])[y]
    # Rows of similar posteriors: of each tenth the class is as frequent as the posterior says.
    for true in range(posterior.shape[1]):
        tenth = np.minimum((10 * posterior[:, true]).astype(int), 9)
        sizes = np.bincount(tenth, minlength=10)
        off = np.bincount(tenth, is_class[:, true] - posterior[:, true], minlength=10)
        spread = np.sqrt(np.bincount(tenth, posterior[:, true] * (1 - posterior[:, true]), minlength=10))
        assert (np.abs(off) <= 4.5 * spread + 1e-9).all()
        assert sizes.sum() == n
    again = simulate(world, n, np.random.default_rng(0))
    np.testing.assert_array_equal(again.y, y)
    if world.endswith("nothing"):
        assert np.ptp(posterior) == 0


def test_labels_are_drawn_by_one_matrix_or_by_one_for_each_row():
    y = np.arange(30_000) % 3
    matrix = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]])
    labels = flip(y, matrix, np.random.default_rng(0))
    for true, label in itertools.product(range(3), range(3)):
        assert np.mean(labels[y == true] == label) == pytest.approx(matrix[true, label], abs=0.02)
    by_row = np.repeat(matrix[None], len(y), axis=0)
    np.testing.assert_array_equal(flip(y, by_row, np.random.default_rng(0)), labels)


# ---- the machinery ----


def judge_small(job, folder):
    """Judge a job whose rows fail where the seed is 1 and no folder is given."""
    if job[3] == 1 and folder is None:
        raise ValueError("the seed is 1")
    return [SlicesRow(*job, named=0.0, false=0.0, spoke=0.0)]


def make_part(judge=judge_small):
    jobs = [("easy", "20-20", 500, seed) for seed in range(3)]
    return Part("slices", "Small?", SlicesRow, lambda quick, folder: jobs, judge, slices.make_tables)


def test_a_part_goes_on_where_it_ended_and_errors_are_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "PARTS", {"slices": make_part()})
    options = ["slices", "--out", str(tmp_path), "--workers", "1"]
    assert run(*options, "--show") == 0
    assert "nothing has been run yet" in capsys.readouterr().err
    assert run(*options) == 0
    output = capsys.readouterr()
    assert "slices: failures, 1" in output.out
    assert "easy, 20-20, 500, 1  ValueError: the seed is 1" in output.out
    path = tmp_path / "slices.csv"
    assert [bool(row.error) for row in results.read(path, SlicesRow)] == [False, True, False]
    before = path.read_text()
    assert run(*options, "--data", "somewhere") == 0  # What failed is run again, what is done is not.
    assert path.read_text().startswith(before)
    assert len(path.read_text().splitlines()) == len(before.splitlines()) + 1
    assert "failures" not in capsys.readouterr().out
    assert (tmp_path / "slices.md").read_text().startswith("# Small?")
    assert run(*options, "--show", "--page", str(tmp_path / "page.md")) == 0
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("# Is what is claimed true?")
    assert "## Small?\n\n### slices and hidden sources" in page


def test_what_is_wrong_is_said_in_a_line(tmp_path, capsys, monkeypatch):
    for arguments, words in [
        (["lables"], "unknown part 'lables': choose from labels, sources"),
        (["--workers", "0"], "at least 1"),
    ]:
        with pytest.raises(SystemExit) as stop:
            run(*arguments)
        assert stop.value.code == 2
        assert words in capsys.readouterr().err
    monkeypatch.setattr(program, "find_version", lambda packages: "")
    monkeypatch.setattr(program, "PARTS", {"annotators": replace(annotators.ANNOTATORS, list_jobs=lambda *_: [])})
    monkeypatch.setattr(program, "ANNOTATORS", program.PARTS["annotators"])
    run("annotators", "--out", str(tmp_path))
    said = capsys.readouterr().err
    assert "Dawid-Skene is left out: pip install --no-deps crowd-kit" in said
    assert "cleanlab is left out" in said


@pytest.mark.parametrize("part", program.PARTS.values(), ids=lambda part: part.name)
@pytest.mark.parametrize("quick", [False, True])
def test_every_job_is_the_beginning_of_its_row(part, quick):
    jobs = part.list_jobs(quick, None)
    assert len(jobs) == len(set(jobs))
    for job in (jobs[0], jobs[-1]):
        assert tuple(part.kind(*job).key)[: len(job)] == job


# ---- sources, annotators, slices ----


def test_the_table_of_sources_counts_runs():
    row = SourcesRow("easy", 4000, 0, 1.0, 0.0, 0.9, 0.8, 0.5, 0.01, 1.0, 1.0, 1.0, 0.9, 0.1)
    rows = [row, replace(row, seed=1, found=0.0, accused=2.0, recall=0.7, bad_covers=0.0)]
    (table,) = sources.make_tables(rows)
    assert table.lines[0][:4] == ["easy", "1 of 2", "1 of 2", "0.800"]
    assert table.lines[0][8] == "1 of 2"


def test_votes_are_by_different_annotators_of_their_skill():
    votes = annotators.draw_votes(("much", 4, 3, 500, 0))
    assert votes.item.tolist() == np.repeat(np.arange(500), 3).tolist()
    pairs = set(zip(votes.item.tolist(), votes.worker.tolist(), strict=True))
    assert len(pairs) == 1500
    right = votes.label == votes.truth[votes.item]
    shares = [right[votes.worker == worker].mean() for worker in range(annotators.WORKERS)]
    assert 0.7 < np.mean(shares) < 0.8
    assert np.std(shares) > 0.08
    again = annotators.draw_votes(("much", 4, 3, 500, 0))
    np.testing.assert_array_equal(again.label, votes.label)


def test_where_ours_is_behind_comes_first():
    rows = [
        AnnotatorsRow(tells, 2, 3, 100, seed, method, accuracy + 0.01 * seed)
        for tells, ours in [("much", 0.9), ("little", 0.7), ("nothing", 0.798)]
        for method, accuracy in [(annotators.OURS, ours), (annotators.MAJORITY, 0.75), (annotators.DAWID_SKENE, 0.8)]
        for seed in range(3)
    ]
    table, quality = annotators.make_tables(rows)
    assert [(line[0].split(",")[0], line[-3], line[-1]) for line in table.lines] == [
        ("little", "-0.100", "BEHIND"),
        ("nothing", "-0.002", "level"),
        ("much", "+0.100", "ahead"),
    ]
    assert len(quality.lines) == 9


def test_false_slices_and_alarms_are_counted():
    row = SlicesRow("hard", "20-20", 4000, 0, named=0.0, false=0.0, spoke=0.0)
    rows = [row, replace(row, seed=1, named=2.0, false=2.0, spoke=1.0)]
    rows += [replace(row, noise="branch-45", named=4.0, false=1.0, found=1.0, spoke=1.0, spoke_right=1.0)]
    (table,) = slices.make_tables(rows)
    assert table.lines == [
        ["20-20, judging", "2", "1.00", "1.00", "50 %", "-", "50 %", "-"],
        ["branch-45, judging", "1", "4.00", "0.25", "100 %", "100 %", "100 %", "100 %"],
    ]


@pytest.mark.parametrize("noise", [*slices.EVEN, *slices.PLANTED])
def test_planted_noise_is_where_it_should_be(noise):
    X, labels = slices._draw(("step", noise, 4000, 0))
    wrong = labels != (X["x0"] > 0)
    assert ("branch" in X) != noise.endswith("hidden")
    if noise in slices.EVEN:
        shares = wrong.groupby(X["branch"], observed=True).mean()
        assert shares.max() - shares.min() < 0.1
    elif noise == "time":
        assert wrong[X["time"] > 0.9].mean() > 0.3
        assert wrong[X["time"] < 0.6].mean() < 0.08
    elif "branch" in X:
        bad = X["branch"] == slices.BAD
        assert wrong[bad].mean() == pytest.approx(int(noise.split("-")[1]) / 100, abs=0.08)
        assert wrong[~bad].mean() == pytest.approx(slices.ELSEWHERE, abs=0.02)


@pytest.mark.slow
def test_a_quick_run_of_everything(tmp_path, capsys):
    pytest.importorskip("cleanlab")
    assert run("all", "--quick", "--workers", "1", "--out", str(tmp_path)) == 0
    output = capsys.readouterr()
    assert "failures" not in output.out
    for name, part in program.PARTS.items():
        rows = results.read(tmp_path / f"{name}.csv", part.kind)
        assert rows
        assert not any(row.error for row in rows)
        assert (tmp_path / f"{name}.md").exists()
    assert (tmp_path / "labels.md").exists()
    methods = {row.method for row in results.read(tmp_path / "annotators.csv", AnnotatorsRow)}
    assert {annotators.OURS, annotators.VOTES_ALONE, annotators.MAJORITY, *annotators.CLEANLAB} <= methods
