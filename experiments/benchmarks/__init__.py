"""Single programs that measure one thing each: ``python -m experiments.benchmarks.NAME``."""
