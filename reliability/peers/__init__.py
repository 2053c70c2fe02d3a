"""The test suites of other libraries, run against PILBoostClassifier: `python -m reliability.peers`."""
