"""The programs that judge what is claimed: worlds are what they say, rows are kept, tables say first what is lost."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from experiments import results
from experiments.trust import annotators, clean, coverage, program, slices, sources
from experiments.trust.annotators import AnnotatorsRow
from experiments.trust.clean import CleanRow
from experiments.trust.coverage import CoverageRow
from experiments.trust.parts import Part
from experiments.trust.slices import SlicesRow
from experiments.trust.sources import SourcesRow
from experiments.trust.worlds import FOUR_WORLDS, TWO_WORLDS, flip, simulate
from untwist import UntwistClassifier
from untwist.commands.main import run_program
from untwist.noise.rates import PRIOR_OF_NO_NOISE


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
    return [replace(make_coverage()[0], world=job[0], seed=job[3])]


def make_part(judge=judge_small):
    jobs = [("easy", "10-30", 500, seed) for seed in range(3)]
    return Part("coverage", "Small?", CoverageRow, lambda quick, folder: jobs, judge, coverage.make_tables)


def test_a_part_goes_on_where_it_ended_and_errors_are_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "PARTS", {"coverage": make_part()})
    options = ["--out", str(tmp_path), "--workers", "1"]
    assert run(*options, "--show") == 0
    assert "nothing has been run yet" in capsys.readouterr().err
    assert run(*options) == 0
    output = capsys.readouterr()
    assert "coverage: failures, 1" in output.out
    assert "easy, 10-30, 500, 1  ValueError: the seed is 1" in output.out
    path = tmp_path / "coverage.csv"
    assert [bool(row.error) for row in results.read(path, CoverageRow)] == [False, True, False]
    before = path.read_text()
    assert run(*options, "--data", "somewhere") == 0  # What failed is run again, what is done is not.
    assert path.read_text().startswith(before)
    assert len(path.read_text().splitlines()) == len(before.splitlines()) + 1
    assert "failures" not in capsys.readouterr().out
    assert (tmp_path / "coverage.md").read_text().startswith("# Small?")
    assert run(*options, "--show", "--page", str(tmp_path / "page.md")) == 0
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("# Is what is claimed true?")
    assert "## Small?\n\n### coverage: losing cells" in page


def test_what_is_wrong_is_said_in_a_line(capsys, monkeypatch):
    for arguments, words in [
        (["covrage"], "unknown part 'covrage': choose from sources"),
        (["--workers", "0"], "at least 1"),
    ]:
        with pytest.raises(SystemExit) as stop:
            run(*arguments)
        assert stop.value.code == 2
        assert words in capsys.readouterr().err
    monkeypatch.setattr(program, "find_version", lambda packages: "")
    monkeypatch.setattr(program, "PARTS", {"annotators": replace(annotators.ANNOTATORS, list_jobs=lambda *_: [])})
    monkeypatch.setattr(program, "ANNOTATORS", program.PARTS["annotators"])
    run("--show", "--out", "nowhere")
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


# ---- coverage ----


def make_coverage(n=10, covered=10, **more):
    row = CoverageRow("step", "10-30", 500, 0, **dict.fromkeys(["neg", "pos", "share", "among_neg", "among_pos"], 0.1))
    limits = {f"{what}{end}": at for what in coverage.BOUNDED for end, at in (("_low", 0.05), ("_high", 0.15))}
    rows = [replace(row, seed=seed, found=1.0, **limits, **more) for seed in range(n)]
    return [replace(row, pos_high=0.15 if row.seed < covered else 0.06) for row in rows]


def test_intervals_that_miss_the_truth_are_counted_and_come_first():
    row = make_coverage()[0]
    assert row.covers("pos") == 1.0
    assert row.width("pos") == pytest.approx(0.1)
    assert replace(row, pos_low=0.1).covers("pos") == 1.0
    assert replace(row, pos_low=0.101).covers("pos") == 0.0
    assert replace(row, pos_high=0.099).covers("pos") == 0.0
    assert math.isnan(replace(row, pos_high=math.nan).covers("pos"))
    design = [replace(row, world="easy") for row in make_coverage(10, 3)]
    first = coverage.make_tables(make_coverage(10, 8) + design)[0]
    assert first.title == "coverage: losing cells, 2"
    assert [line[:5] for line in first.lines] == [
        ["judging", "500", "unequal", "pos", "0.80"],
        ["design", "500", "unequal", "pos", "0.30"],
    ]
    assert coverage.make_tables(make_coverage(10, 9))[0].lines == []


def test_one_sample_is_audited_and_kept_apart_by_rates():
    (row,) = coverage.judge(("step", "20-20", 300, 0), None)
    assert (row.neg, row.pos) == (0.2, 0.2)
    assert row.share == pytest.approx(0.2, abs=0.1)
    assert all(0 <= getattr(row, f"{what}_low") <= getattr(row, f"{what}_high") <= 1 for what in coverage.BOUNDED)
    assert coverage.judge(("step", "20-20", 300, 0), None) == [row]


# ---- clean ----


def make_clean(data, none, default, twist="none", classes="two", split=0, **more):
    row = CleanRow(data, classes, twist, split, clean.MOST_ROWS, 100, none, default, 0.8, 0.8, 0.0)
    return replace(row, **more)


def test_the_worst_clean_set_comes_first_and_promises_are_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(clean, "REFERENCE", tmp_path / "before.csv")
    noisy = make_clean("b", 0.6, 0.5, "class-0.1-0.4")
    with results.Writer(clean.REFERENCE, results.list_columns(CleanRow)) as writer:
        writer.add([*noisy.key, 100, 0.6, 0.4, 0.8, 0.8, 1.0, *[math.nan] * len(clean.PRIORS), ""])
    rows = [make_clean("a", 0.5, 0.5), make_clean("b", 0.2, 0.21), make_clean("b", 0.2, 0.20, split=1), noisy]
    bars, sets, gains = clean.make_tables(rows)
    # The means of both sets are .35 and .3525.
    found = {tuple(line[:2]): (line[2], line[4]) for line in bars.lines}
    assert found["all", "clean, mean"] == ("+0.71%", "met")
    assert found["all", "clean, worst"] == ("+2.50% (b)", "met")
    assert found["all", "gain kept"] == ("50% of 0.2000", "missed")
    assert [line[0] for line in sets.lines] == ["b", "a"]
    assert [line[5] for line in sets.lines] == ["+2.5%", "+0.0%"]
    (gain,) = [line for line in gains.lines if "class-0.1-0.4" in line[0]]
    assert gain[2:6] == ["0.600", "0.400", "0.500", "0.1000"]
    worse = [make_clean("a", 0.5, 0.53), make_clean("b", 0.2, 0.2)]
    assert [line[4] for line in clean.make_tables(worse)[0].lines if line[0] == "all"] == ["missed", "missed"]


def test_both_posteriors_come_from_one_fit():
    X, y, _ = simulate("easy", 300, np.random.default_rng(0))
    y = flip(y, np.array([[0.8, 0.2], [0.2, 0.8]]), np.random.default_rng(1))
    plain = UntwistClassifier(noise=None, random_state=0).fit(X, y)
    model = UntwistClassifier(random_state=0).fit(X, y)
    uncorrected, corrected = clean.predict_both(model, X)
    np.testing.assert_allclose(uncorrected, plain.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(corrected, model.predict_proba(X))
    assert np.abs(corrected - uncorrected).max() > 0.01


def test_the_curve_of_the_decision_is_what_each_prior_loses_and_wins():
    X, y, _ = simulate("easy", 400, np.random.default_rng(0))
    y = flip(y, np.array([[0.9, 0.1], [0.1, 0.9]]), np.random.default_rng(1))
    model = UntwistClassifier(random_state=0).fit(X, y)
    uncorrected, corrected = clean.predict_both(model, X)
    np.testing.assert_allclose(clean.predict_by_prior(model, X, PRIOR_OF_NO_NOISE), corrected, atol=1e-9)
    bold, shy = (clean.predict_by_prior(model, X, prior) for prior in (0.001, 0.999))
    assert np.abs(shy - uncorrected).mean() < np.abs(bold - uncorrected).mean()
    priors = {f"prior_{prior}": 0.5 + prior / 1000 for prior in clean.PRIORS}
    rows = [make_clean("a", 0.5, 0.5, **priors), make_clean("a", 0.7, 0.5, "class-0.1-0.4", **priors)]
    curve = clean.make_tables(rows)[-1]
    assert curve.title == "the curve of the decision"
    assert curve.lines[0] == ["judging, 10 %", "+2.00%", "+2.0%", "0.1900", "-", "-"]
    assert curve.lines[-1] == ["judging, 97 %", "+19.40%", "+19.4%", "0.1030", "-", "-"]


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
    assert run("--quick", "--workers", "1", "--out", str(tmp_path)) == 0
    output = capsys.readouterr()
    assert "failures" not in output.out
    for name, part in program.PARTS.items():
        rows = results.read(tmp_path / f"{name}.csv", part.kind)
        assert rows
        assert not any(row.error for row in rows)
        assert (tmp_path / f"{name}.md").exists()
    methods = {row.method for row in results.read(tmp_path / "annotators.csv", AnnotatorsRow)}
    assert {annotators.OURS, annotators.VOTES_ALONE, annotators.MAJORITY, *annotators.CLEANLAB} <= methods
