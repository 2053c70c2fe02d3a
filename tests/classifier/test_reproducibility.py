"""The same seed, data and version give the same model, on any number of threads and any machine.

What is exact: the trees, values included, wherever weights come from the clipped link. They are made of whole-number
sums and of sums, products and quotients of IEEE numbers, no two of them fused (-ffp-contract=off), so that neither the
width of vectors nor the C library plays a part. The exact link, and what is judged by logarithms (early stopping and
whatever is left open), take exp and log from the C library, whose last bit may differ from machine to machine: there
the splits must still be the same, and numbers agree to a tolerance. So do probabilities, which are made by exp and log,
and the scores of classes that are boosted together, which begin at the logarithms of their shares.
"""

import json

import numpy as np
import pytest

from helpers.number_fixtures import BY_LIBM, CASES, PATH, describe, fit, make_labels, make_rows

STORED = json.loads(PATH.read_text())["cases"]


def test_every_case_is_stored():
    assert set(STORED) == set(CASES)


def test_the_data_are_those_of_the_fixture():
    X = make_rows(3)
    np.testing.assert_array_equal(X[:, 2], [0, 1, 3])
    assert np.isnan(make_rows()[:, 5]).mean() == pytest.approx(0.2, abs=0.02)
    assert np.bincount(make_labels(make_rows(), 4)).min() > 100


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned(2)
def test_numbers_are_those_of_earlier_versions(name, n_jobs):
    found, stored = describe(fit(name, n_jobs)), STORED[name]
    assert found["n_iter"] == stored["n_iter"]
    assert found["structure"] == stored["structure"]
    if name in BY_LIBM:
        # Weights have 17 to 24 bits.
        np.testing.assert_allclose(found["scores"], stored["scores"], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found["proba"], stored["proba"], rtol=1e-5)
    else:
        assert found["trees"] == stored["trees"]
        assert found["scores"] == stored["scores"]
        np.testing.assert_allclose(found["proba"], stored["proba"], rtol=1e-7)


@pytest.mark.slow
def test_two_fits_of_one_process_are_one_model():
    for name in ("drawn rows and columns", "automatic"):
        assert describe(fit(name)) == describe(fit(name))
