"""The search: candidates boosted on folds, the best of them kept, the noise read off the rows set aside.

Every candidate (an alpha, a depth, and the share of rows and columns that trees draw) is boosted on all folds side by
side, or, where rows are many, on the first ones, and the best of them then on the others. The log-loss of the twisted
posterior on the rows set aside, which needs no clean label, says how many rounds to keep and which candidate is best.
Depth is chosen first, at the first alpha, from the middle outwards, then alpha; where families of two classes are mixed
and no share was given, larger alphas are tried as in the paper only, with its depth and all rows and columns. Columns
of many categories are coded by their labels, or split by sets of categories where the first candidate does better so.
Randomised trees join the best candidate (`untwist.automatic.randomised`), unless only boosted ones can do what was
asked for. The model is the mean of the fold models, and has what they say of the rows that they have not seen. Where
folds of one's own do not train on all that they do not judge, the model is boosted once more on all rows. Threads that
a candidate leaves idle boost those that are likely to be next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from untwist.automatic.candidates import SLOW_AFTER, CandidateKey, FoldRun
from untwist.automatic.forecast import GROWING_SHARE, USUAL_ALPHAS, USUAL_DEPTHS, Forecast
from untwist.automatic.out_of_fold import HeldOutScores, find_posteriors, score_held_out_rows
from untwist.automatic.randomised import grow_mixture, mix_in_randomised_trees, plan_randomised_trees
from untwist.boosting.engines.engine import Team
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest, count_threads
from untwist.boosting.runs import advance, say
from untwist.fitting import Fit, make_team
from untwist.model import Candidate, Choice, FittedModel, Mixture
from untwist.progress import find_display
from untwist.settings import JOINT_LEARNING_RATES, LEARNING_RATES, MIXED_ALPHAS, MIXED_DEPTHS, PLAIN_DEPTH
from untwist.sums import add_up
from untwist.theory.links import Link, LogitLink
from untwist.theory.losses import AlphaLoss
from untwist.theory.several_classes import SoftmaxLink
from untwist.training_data import TrainingData

__all__ = ["MOST_CLASSES_AFTER_INTERRUPT", "Search"]

#: With this many held-out rows two candidates can be told apart; the remaining folds are boosted for the winner only.
ENOUGH_ROWS = 4000

#: The same where randomised trees make up for a candidate that is second best: for two classes, and for more.
ENOUGH_ROWS_MIXED = 600
ENOUGH_ROWS_JOINTLY = 1000

#: Candidates are boosted before their turn with at least this many threads; the one whose turn it is keeps fewer busy.
LEAST_THREADS_TO_FORESEE = 4

#: Up to this many rows, a booster makes little use of more than one thread.
FEW_ROWS_TO_FORESEE = 30_000

#: Rounds of a candidate, at most, where they are left open.
MOST_ROUNDS = 1000

#: Few rows with more columns than this are told apart in no time, and rounds are dear: there are fewer of them, and
#: steps that prove too short become long soon.
MANY_COLUMNS = 10_000
FEW_ROWS = 1000
MOST_ROUNDS_OF_MANY_COLUMNS = 100
SLOW_AFTER_OF_MANY_COLUMNS = 50
LONG_STEP = 0.2

#: Sets of categories take the place of numbers that labels tell where their loss is lower by this share of it at least.
#: Less than that is mostly chance, and sets have more to lose by it.
SETS_MUST_GAIN = 0.02

#: Rounds between two looks at whether a candidate is done.
BLOCK = 10

#: Once Ctrl-C has come, rows set aside are judged where that takes half a second: the noise is estimated of no more
#: classes than these, and scores are added up of no more rows times trees.
MOST_CLASSES_AFTER_INTERRUPT = 20
MOST_LOOKUPS_AFTER_INTERRUPT = 30_000_000


class Search:
    """The choice of what was left open.

    Parameters
    ----------
    data : TrainingData
        The rows with their folds.
    started_at : float or None
        When the fit began that callbacks are told of; None for now.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from untwist import UntwistClassifier
    >>> from untwist.settings import resolve_recipe
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> settings = resolve_recipe(UntwistClassifier(random_state=0).get_params())
    >>> print(Search(TrainingData.collect(settings, X, y)).run().model.choice)
    alpha 1, depth 2, ... rounds, chosen from:
    ...
    """

    def __init__(self, data: TrainingData, started_at: float | None = None) -> None:
        assert data.folds is not None  # Candidates are compared by rows set aside.
        self.data = data
        self.settings = data.settings
        open_steps = JOINT_LEARNING_RATES if self._scores_are_logarithms else LEARNING_RATES
        if self._has_many_columns:
            open_steps = (open_steps[0], LONG_STEP)
        steps = open_steps if self.settings.step is None else (self.settings.step,)
        self.step = steps[0]
        self.longer_steps = list(steps[1:])
        self.held_out_weight = data.folds  # The weight of each row that each fold sets aside.
        self.fold_weights = data.workers.sum(np.array([add_up(weight) for weight in self.held_out_weight]))
        self.candidates: dict[CandidateKey, Candidate] = {}
        self.chosen: Candidate | None = None
        self.best_run: FoldRun | None = None
        self.interrupt: KeyboardInterrupt | None = None
        self.stopped = False
        self.team: Team | None = None
        self.foreseen: dict[CandidateKey, FoldRun] = {}
        self.foresees = False
        self.started_at = time.perf_counter() if started_at is None else started_at
        self.forecast = self._make_forecast()

    def _make_forecast(self) -> Forecast:
        """Return what tells how long the search may take."""
        data = self.data
        n_trees, leaf_sizes = plan_randomised_trees(data.n_effective_rows, len(data.classes))
        n_depths = USUAL_DEPTHS if len(self.depths) > 1 else 1
        return Forecast(
            n_candidates=n_depths + (USUAL_ALPHAS if len(self.alphas) > 1 else 0),
            n_folds=len(self.fold_weights),
            n_first_folds=self.n_first_folds,
            n_rows=data.n_rows,
            n_classes=len(data.classes),
            most_rounds=self.most_rounds,
            n_trees=n_trees if data.mixes_families else 0,
            leaf_sizes=leaf_sizes,
            has_sources=data.sources is not None and self.settings.untwists_posteriors,
        )

    def show(self, words: str, done: float) -> None:
        """Show what is being done, with the seconds that are left, which depend on how much of it is done."""
        self.forecast.tell(done)
        display = find_display()
        if display is not None and self.data.workers.rank == 0:
            display.show(words, self.forecast.seconds_left)

    def show_noise(self) -> None:
        """Show that the search has ended, and that the noise is what is looked for."""
        assert self.best_run is not None
        self.forecast.begin("noise", self.best_run.count)
        self.show("how noisy the labels are", 0.0)

    @property
    def n_first_folds(self) -> int:
        """The number of folds that set enough rows aside to compare candidates by."""
        enough = ENOUGH_ROWS
        if self._scores_are_logarithms:
            enough = ENOUGH_ROWS_JOINTLY if self.data.boosts_jointly else ENOUGH_ROWS_MIXED
        return min(int(np.searchsorted(np.cumsum(self.fold_weights), enough)) + 1, len(self.fold_weights))

    @property
    def _scores_are_logarithms(self) -> bool:
        """Whether boosted scores, over alpha, are logarithms of posteriors, as those of randomised trees are."""
        return self.data.boosts_jointly or self.data.boosts_log_odds

    @property
    def alphas(self) -> tuple[float, ...]:
        """The alphas to choose from."""
        given = self.settings.alphas
        assert given is not None  # Only the paper's class estimates alpha.
        return MIXED_ALPHAS if self.data.boosts_log_odds and len(given) > 1 else given

    @property
    def depths(self) -> list[int]:
        """The depths to choose from."""
        given = self.settings.depths
        return sorted(MIXED_DEPTHS if self.data.boosts_log_odds and len(given) > 1 else given)

    @property
    def shares(self) -> tuple[float | None, ...]:
        """The shares of rows and columns that trees may draw, to choose from; None for what was given."""
        return self.settings.shares if self.data.boosts_log_odds else (None,)

    @property
    def fixed_rounds(self) -> int | None:
        """The number of rounds, where it is given."""
        return self.settings.n_rounds

    @property
    def most_rounds(self) -> int:
        """The number of rounds that a candidate makes at most."""
        if self.settings.n_rounds is not None:
            return self.settings.n_rounds
        return MOST_ROUNDS_OF_MANY_COLUMNS if self._has_many_columns else MOST_ROUNDS

    @property
    def _has_many_columns(self) -> bool:
        """Whether the columns are far more than the rows, so that there are fewer rounds."""
        # All workers of a distributed fit must decide alike, and rows without weight have no say.
        return self.data.n_effective_rows <= FEW_ROWS and self.data.encoder.n_features > MANY_COLUMNS

    def run(self) -> Fit:
        """Choose, and make the model of the best candidate.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C came before the first few rounds of the first candidate.
        """
        self.team = make_team(self.data)
        try:
            self._try_candidates()
            self.foreseen.clear()
            if self.best_run is None:
                assert self.interrupt is not None
                raise self.interrupt
            self.boost_remaining_folds(self.best_run)
            self.best_run.team = None
        finally:  # Nothing holds the team any more, so that its threads end.
            self.foreseen.clear()
            self.team = None
        return Fit(self._make_model(self.best_run), self.interrupt)

    @property
    def _n_threads(self) -> int:
        return count_threads(self.settings.engine_options.n_jobs)

    def _try_candidates(self) -> None:
        """Try one candidate after the other; the best of them is `best_run`."""
        self._choose_sets_or_numbers()
        # Callbacks are told of one candidate after the other.
        self.foresees = self.team is not None and not self.settings.callbacks
        depth = find_lowest(self.depths, lambda depth: self.try_candidate(self.alphas[0], depth))
        self.try_candidate(self.alphas[0], depth)  # A depth that was given has not been tried.
        if len(self.shares) == 1:
            self._try_larger_alphas(depth, self.shares[0])
        else:
            self._try_larger_alphas(PLAIN_DEPTH, self.shares[1])  # These are as in the paper.

    def _try_larger_alphas(self, depth: int, drawn: float | None) -> None:
        """Try one alpha after the other, as long as that helps."""
        for alpha in self.alphas[1:]:
            if self.best_run is None:
                return
            least = self.candidates[self.best_run.key].loss
            if self.try_candidate(alpha, depth, drawn) > least:
                return  # An even larger alpha would hardly help.

    def _choose_sets_or_numbers(self) -> None:
        """Try the first candidate with columns of many categories as sets too, and go on with what is better.

        Numbers that labels tell do not see what a category does together with other columns, and sets see too much.
        """
        by_sets = self.data.split_by_sets()
        if by_sets is None:
            return
        alpha = self.alphas[0]
        depth = self.depths[len(self.depths) // 2]
        loss = self.try_candidate(alpha, depth)
        by_numbers = self.data, self.candidates, self.best_run
        if self.stopped:
            return
        self.data, self.candidates, self.best_run = by_sets, {}, None
        is_better = self.try_candidate(alpha, depth) < (1.0 - SETS_MUST_GAIN) * loss
        if not is_better or self.interrupt is not None:
            self.data, self.candidates, self.best_run = by_numbers

    def try_candidate(self, alpha: float, depth: int, drawn: float | None = None) -> float:
        """Boost a candidate on the first folds and return its loss; infinity where the search has been ended."""
        key = CandidateKey(alpha, depth, self.shares[0] if drawn is None else drawn)
        known = self.candidates.get(key)
        if known is not None:
            return known.loss
        if self.stopped:
            return np.inf
        try:
            run = self.take_run(key)
        except KeyboardInterrupt as interrupt:
            if self.best_run is None:
                raise
            self._stop_for(interrupt)
            return np.inf
        self.boost(run)
        if run.is_slow and not self.stopped and self.longer_steps:
            run = self.try_longer_steps(run)
        if self.interrupt is not None and (self.best_run is not None or run.count == 0):
            return np.inf  # A candidate that was compared with others is better than half of one.
        return self.record(run)

    def try_longer_steps(self, shorter: FoldRun) -> FoldRun:
        """Boost the same candidate with longer steps; return what there is if Ctrl-C comes before they get anywhere."""
        self.step = self.longer_steps.pop()
        try:
            self.foreseen.clear()
            run = self.start_run(shorter.key, range(self.n_first_folds))
        except KeyboardInterrupt as interrupt:
            self._stop_for(interrupt)
            return shorter
        self.boost(run)
        return run if run.count else shorter

    def _stop_for(self, interrupt: KeyboardInterrupt) -> None:
        """End the search because of Ctrl-C."""
        self.interrupt = interrupt
        self.stopped = True

    # ---- candidates that are boosted before it is their turn ----

    def take_run(self, key: CandidateKey) -> FoldRun:
        """Return the run of a candidate whose turn it is, and begin those likely to be next, for idle threads."""
        run = self.foreseen.pop(key, None)
        if run is None:
            run = self.start_run(key, range(self.n_first_folds))
        # The best candidate and the steps that are left may have changed since the run began.
        run = replace(run, slow_after=self._slow_after, to_beat=self._candidate_to_beat)
        likely = self.list_likely_keys(key)
        for unlikely in self.foreseen.keys() - set(likely):
            del self.foreseen[unlikely]
        for other in likely:
            if other not in self.foreseen and len(self.foreseen) + 1 < self.n_runs_at_once:
                self.foreseen[other] = self.start_run(other, range(self.n_first_folds))
        return run

    @property
    def n_runs_at_once(self) -> int:
        """The number of candidates that are boosted at once, some of which may turn out not to be needed."""
        n_boosters = self.n_first_folds * len(self.data.positive_classes)
        is_small = self.data.n_rows <= FEW_ROWS_TO_FORESEE
        # Candidates that began with short steps would be of no use to one that calls for longer ones.
        may_lengthen = bool(self.longer_steps) and not is_small
        if not self.foresees or may_lengthen or self._n_threads < LEAST_THREADS_TO_FORESEE:
            return 1
        n_threads_each = 1 if is_small else 2
        n_candidates = len(self.depths) + (len(self.shares) > 1)
        return max(1, min(self._n_threads // (n_boosters * n_threads_each), n_candidates))

    def list_likely_keys(self, taken: CandidateKey) -> list[CandidateKey]:
        """Return the candidates that may be tried after this one, the most likely first."""
        alpha, drawn = self.alphas[0], self.shares[0]
        middle = len(self.depths) // 2
        by_depth = {depth: self.candidates.get(CandidateKey(alpha, depth, drawn)) for depth in self.depths}
        here, below = by_depth[self.depths[middle]], by_depth[self.depths[middle - 1]] if middle else None
        falls = here is None or below is None or here.loss > below.loss
        rises = here is None or below is None or not falls
        certain = [self.depths[middle], *self.depths[middle - 1 : middle]] if middle else self.depths[:1]
        further = self.depths[middle + 1 :] if rises else []
        further += self.depths[: max(0, middle - 1)][::-1] if falls else []
        keys = [CandidateKey(alpha, depth, drawn) for depth in certain]
        if len(self.shares) > 1:
            keys += [CandidateKey(larger, PLAIN_DEPTH, self.shares[1]) for larger in self.alphas[1:2]]
        keys += [CandidateKey(alpha, depth, drawn) for depth in further]
        return [key for key in keys if key != taken and key not in self.candidates]

    def start_run(self, key: CandidateKey, folds: range) -> FoldRun:
        """Return a candidate on these folds, before its first round."""
        data = self.data
        alpha, depth, drawn = key
        link: Link = self.settings.make_link(alpha)
        step = self.step
        growth = replace(data.growth, max_depth=depth)
        if drawn is not None:
            growth = replace(growth, subsample=drawn, max_features=drawn)
        if data.boosts_jointly:
            step *= alpha  # The scores are divided by alpha in the end.
        elif data.boosts_log_odds:
            link = LogitLink(AlphaLoss(alpha))
            step *= 2.0 * alpha  # Log-odds are the difference of two such scores.
        boosters = []
        by_fold = [data.find_starts(link, data.training_weight(fold)) for fold in folds]
        starts = [list(class_starts) for class_starts in zip(*by_fold, strict=True)]
        for class_index, class_starts in enumerate(starts):
            task = replace(data.make_task(link, step, class_index), growth=growth)
            class_boosters = []
            for fold, start in zip(folds, class_starts, strict=True):
                fold_task = replace(
                    task,
                    weight=data.training_weight(fold),
                    validation_weight=self.held_out_weight[fold],
                    start=np.full(len(data.rows.labels), start) if start else None,
                )
                class_boosters.append(self.settings.engine.make_booster(data.dataset_of(fold), fold_task))
            boosters.append(class_boosters)
        return FoldRun(
            alpha=alpha,
            depth=depth,
            drawn=drawn,
            step=self.step,
            boosters=boosters,
            fold_weights=self.fold_weights[folds.start : folds.stop],
            starts=starts,
            ends_by_itself=self.fixed_rounds is None,
            slow_after=self._slow_after,
            to_beat=self._candidate_to_beat,
            team=self.team,
            companions=self.foreseen.values(),
        )

    @property
    def _slow_after(self) -> int | None:
        """After how many rounds a loss that still falls calls for longer steps, where there are some."""
        if not self.longer_steps:
            return None
        return SLOW_AFTER_OF_MANY_COLUMNS if self._has_many_columns else SLOW_AFTER

    @property
    def _candidate_to_beat(self) -> Candidate | None:
        """The best candidate so far."""
        return None if self.best_run is None else self.candidates[self.best_run.key]

    def boost(self, run: FoldRun) -> None:
        """Boost a candidate until it ends, or a callback or Ctrl-C end the search."""
        self.forecast.begin("candidates")
        words = f"trying alpha {run.alpha:g}, depth {run.depth}"
        end = advance(
            [run],
            self.most_rounds,
            block=BLOCK,
            rounds_open=True,
            callbacks=self.settings.callbacks,
            workers=self.data.workers,
            started_at=self.started_at,
            watch=lambda: self.show(f"{words}, round {run.count}", run.count),
        )
        self.forecast.end_candidate(run.count)
        self.interrupt = end.interrupt
        self.stopped = end.stopped_by_callback or end.interrupt is not None

    def record(self, run: FoldRun) -> float:
        """Keep what a candidate has come to, and the candidate itself if it is the best so far."""
        candidate = run.summarise(self.fixed_rounds)
        self.candidates[run.key] = candidate
        if self.best_run is None or candidate.loss < self.candidates[self.best_run.key].loss:
            self.best_run = run
        if self.settings.verbose and self.data.workers.rank == 0:
            say(str(candidate))
        return candidate.loss

    def boost_remaining_folds(self, best: FoldRun) -> None:
        """Boost the best candidate on the folds that it has not seen."""
        remaining = range(self.n_first_folds, len(self.fold_weights))
        if not remaining or self.interrupt is not None:
            return
        self.step = best.step
        others = replace(self.start_run(best.key, remaining), ends_by_itself=False)
        self.forecast.begin("folds", best.count)
        end = advance(
            [others],
            best.count,
            block=BLOCK,
            workers=self.data.workers,
            watch=lambda: self.show(f"the other folds, round {others.count}", others.count / best.count),
        )
        self.interrupt = end.interrupt
        if end.interrupt is None:
            best.take_folds(others)
            self.chosen = best.summarise(self.fixed_rounds)

    def _make_model(self, best: FoldRun) -> FittedModel:
        """Return the mean of the fold models of the best candidate, and what each says of the rows it has not seen."""
        data, settings = self.data, self.settings
        candidate = self.candidates[best.key] if self.chosen is None else self.chosen
        forests = best.list_forests(candidate.n_rounds)
        n_folds = len(best.fold_weights)
        mixture = None
        link: Link | SoftmaxLink = settings.make_link(candidate.alpha)
        if self._scores_are_logarithms:
            link = SoftmaxLink(AlphaLoss(candidate.alpha)) if data.boosts_jointly else LogitLink(AlphaLoss(1.0))
            forests = [[forest.scale(1.0 / candidate.alpha) for forest in forests[0]]]
        unseen = None
        try:
            if self.interrupt is None or self._is_quickly_judged(n_folds, candidate.n_rounds):
                unseen = self.collect_held_out_scores(forests)
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
        if data.mixes_families and unseen is not None and self.interrupt is None:
            self.forecast.begin("trees", best.count)
            self.show("randomised trees", 0.0)
            try:
                forests[0], unseen, mixture = mix_in_randomised_trees(
                    data,
                    forests[0],
                    unseen,
                    training_weights=[data.training_weight(fold) for fold in range(n_folds)],
                    n_first_folds=self.n_first_folds,
                    score_held_out_rows=lambda randomised: self.collect_held_out_scores([randomised]),
                    tell=lambda grown: self.show("randomised trees", GROWING_SHARE * grown),
                )
            except KeyboardInterrupt as interrupt:
                self.interrupt = interrupt
        if data.own_folds is not None and not data.own_folds.is_complete and self.interrupt is None:
            forests = self.train_on_all_rows(best, candidate, mixture) or forests
        ensembles = [
            Ensemble.from_forest(Forest.average(class_forests), losses, errors)
            for class_forests, (losses, errors) in zip(forests, best.curves(), strict=True)
        ]
        model = FittedModel(
            classes=data.classes,
            encoder=data.encoder,
            ensembles=tuple(ensembles),
            link=link,
            alpha=candidate.alpha,
            step_size=candidate.step,
            class_weights=data.class_weights,
            seed=data.growth.seed,
            n_rows=data.n_rows,
            n_effective_rows=data.n_effective_rows,
            choice=Choice(candidate, tuple(self.candidates.values()), mixture),
        )
        if unseen is None:
            return model
        return replace(model, out_of_fold=find_posteriors(model, data, unseen, self.held_out_weight[:n_folds]))

    def _is_quickly_judged(self, n_folds: int, n_rounds: int) -> bool:
        """Tell whether rows set aside are scored, and their noise is estimated, before whoever waits gets impatient."""
        n_lookups = int(np.count_nonzero(self.held_out_weight[:n_folds])) * n_rounds
        return len(self.data.classes) <= MOST_CLASSES_AFTER_INTERRUPT and n_lookups <= MOST_LOOKUPS_AFTER_INTERRUPT

    def train_on_all_rows(self, best: FoldRun, candidate: Candidate, mixture: Mixture | None) -> list[list[Forest]]:
        """Return trees of all rows, by class, with the settings that folds chose; nothing where Ctrl-C comes before.

        Folds of one's own may train on few rows each, and on some rows never, so that their mean is no model of all.
        """
        whole = Search(self.data.join_folds())
        whole.step = candidate.step
        run = replace(whole.start_run(best.key, range(1)), ends_by_itself=False)
        self.forecast.begin("folds", candidate.n_rounds)
        end = advance(
            [run],
            candidate.n_rounds,
            block=BLOCK,
            workers=self.data.workers,
            watch=lambda: self.show(f"all rows, round {run.count}", run.count / candidate.n_rounds),
        )
        self.interrupt = end.interrupt
        if end.interrupt is not None:
            return []
        forests = run.list_forests(candidate.n_rounds)
        if self._scores_are_logarithms:
            forests = [[forests[0][0].scale(1.0 / candidate.alpha)]]
        if mixture is not None:
            forests = [[grow_mixture(whole.data, forests[0][0], mixture, n_folds=len(self.fold_weights))]]
        return forests

    def collect_held_out_scores(self, forests: list[list[Forest]]) -> HeldOutScores:
        """Score the rows that the first folds have not seen."""
        data = self.data
        unseen = score_held_out_rows(
            forests,
            data.rows,
            self.held_out_weight[: len(forests[0])],
            data.n_rows,
            n_jobs=self.settings.engine_options.n_jobs,
            show_to_fold=data.show_to_fold,
            own_folds=data.own_folds,
        )
        # Class weights do not belong to the labels.
        by_class = data.class_weights[unseen.labels]
        weight = np.divide(unseen.weight, by_class, out=np.zeros_like(unseen.weight), where=unseen.weight > 0)
        return replace(unseen, weight=weight)


def find_lowest(levels: Sequence[int], find_loss: Callable[[int], float]) -> int:
    """Return the best level: from the middle one down as long as that helps; if it does not, up."""
    best = middle = len(levels) // 2
    while best > 0 and find_loss(levels[best]) > find_loss(levels[best - 1]):
        best -= 1
    while middle <= best < len(levels) - 1 and find_loss(levels[best]) > find_loss(levels[best + 1]):
        best += 1
    return levels[best]
