"""What all tests share: how many examples a property gets, and which cases of a test are left to `make test-slow`."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from sklearn.datasets import load_breast_cancer

from helpers.report_fixtures import make_customers
from helpers.strategies import EXAMPLES
from untwist.audit import audit_labels
from untwist.noise import sources

settings.register_profile(
    "untwist",
    database=None,
    deadline=None,
    derandomize=EXAMPLES <= 1,
    # Samples are small as they come, and shrinking them takes minutes.
    phases=[Phase.explicit, Phase.generate],
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("untwist")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark all but every n-th case of a test that is `thinned(n)` as slow."""
    cases = Counter()
    for item in items:
        if thinned := item.get_closest_marker("thinned"):
            (every,) = thinned.args
            test = item.nodeid.partition("[")[0]
            if cases[test] % every:
                item.add_marker(pytest.mark.slow)
            cases[test] += 1


@pytest.fixture(scope="module")
def few_components():
    """What sources are like is averaged over few kinds of noise: quicker, and for tests that are of something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "MOST_COMPONENTS", sources.FEWEST_COMPONENTS)
        yield


@pytest.fixture(scope="session")
def shop():
    """The audit of a table of customers with wrong labels."""
    table, labels, _ = make_customers()
    return audit_labels(table, labels)


@pytest.fixture(scope="session")
def three():
    """The audit of three classes with wrong labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    truth = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.6, 0.6])
    return audit_labels(X, np.where(rng.random(600) < 0.2, rng.integers(0, 3, 600), truth))


@pytest.fixture(scope="session")
def clean():
    """The audit of a table without wrong labels."""
    return audit_labels(*load_breast_cancer(return_X_y=True))
