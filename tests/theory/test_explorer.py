"""The explorer: which family undoes which twist."""

import numpy as np
import pytest

from untwist.explorer import ALPHA, FOCAL, SUPER, LossFamily, explore
from untwist.losses import AlphaLoss
from untwist.twists import alpha_star

BLUNTED, SHARPENED, CROSSED = (0.1, 0.3), (0.3, 0.1), (0.3, 0.7)


@pytest.mark.parametrize("pair", [BLUNTED, SHARPENED, CROSSED])
def test_alpha_loss_undoes_all_three(pair):
    found = explore(ALPHA, *pair)
    assert found.reaches()
    assert found.single
    assert found.parameters["alpha"] == pytest.approx(float(alpha_star(*pair)), rel=1e-4)


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.thinned(5)
def test_alpha_loss_undoes_any_twist_and_alpha_star_says_how(seed):
    clean, twisted = np.random.default_rng(seed).uniform(0.001, 0.999, 2)
    found = explore(ALPHA, clean, twisted)
    assert found.reaches()
    assert found.single


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.thinned(4)
def test_focal_loss_undoes_what_lies_between_eta_twisted_and_one_half(seed):
    rng = np.random.default_rng(seed)
    twisted = rng.uniform(0.02, 0.4)
    assert explore(FOCAL, rng.uniform(twisted, 0.45), twisted).reaches()
    assert not explore(FOCAL, rng.uniform(0.01, 0.99 * twisted), twisted).reaches()


@pytest.mark.parametrize(
    ("family", "pair", "reached", "distance"),
    [
        (FOCAL, BLUNTED, False, 0.2),
        (FOCAL, SHARPENED, True, 0.0),
        (FOCAL, CROSSED, False, 0.2),
        (SUPER, BLUNTED, True, 0.0),
        (SUPER, SHARPENED, False, 0.2),
        (SUPER, CROSSED, False, 0.4),
    ],
    ids=lambda value: value.name if isinstance(value, LossFamily) else str(value),
)
@pytest.mark.slow
def test_focal_and_super_loss_fail_where_the_theory_says(family, pair, reached, distance):
    found = explore(family, *pair)
    assert found.reaches() is reached
    assert found.distance == pytest.approx(distance, abs=5e-3)
    assert ("reaches" in str(found)) is reached


def test_a_whole_interval_is_the_answer_only_where_no_point_is():
    found = explore(ALPHA, 0.2, 0.5)
    assert found.reaches()
    assert not found.single
    assert "one of several" in str(found)


def test_any_family_can_be_explored():
    positive_only = LossFamily("alpha > 0", AlphaLoss, {"alpha": (0.1, 1.0, 10.0)})
    assert explore(positive_only, *BLUNTED).reaches()
    assert not explore(positive_only, *CROSSED).reaches()
    with pytest.raises(ValueError, match="family must be a LossFamily, such as ALPHA, got 'alpha'"):
        explore("alpha", 0.5, 0.5)
    with pytest.raises(ValueError, match="eta_clean must lie"):
        explore(ALPHA, 1.5, 0.5)
