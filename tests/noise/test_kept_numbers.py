"""The very numbers of some estimates: a patch changes none of them."""

import json

import numpy as np
import pytest

from helpers.noise_number_fixtures import CASES, PATH

KEPT = json.loads(PATH.read_text())["cases"]


@pytest.mark.parametrize("name", CASES)
def test_estimates_have_the_numbers_that_they_had(name):
    make, tolerance = CASES[name]
    found = make()
    assert found.keys() == KEPT[name].keys()
    for what, value in found.items():
        np.testing.assert_allclose(value, KEPT[name][what], rtol=tolerance, atol=tolerance, err_msg=f"{name}: {what}")


def test_every_kept_estimate_is_made():
    assert CASES.keys() == KEPT.keys()
