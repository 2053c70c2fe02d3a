"""What all tests share: how many examples a property gets, and which cases of a test are left to `make test-slow`."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings

from helpers.strategies import EXAMPLES

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
