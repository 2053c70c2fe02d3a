"""The engines by name. A further one is a file with a subclass of `Engine`, and a line here or a call of `register`."""

from __future__ import annotations

from typing import Any

from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import Engine
from untwist.boosting.engines.reference import ReferenceEngine
from untwist.boosting.engines.xgboost.engine import XGBoostEngine

ENGINES: dict[str, Engine] = {}


def register(engine: Engine) -> None:
    """Make an engine known, so that ``PILBoostClassifier(engine=engine.name)`` takes it."""
    ENGINES[engine.name] = engine


def find_engine(name: Any) -> Engine:
    """Return the engine of that name; a ValueError lists those that there are."""
    if not isinstance(name, str) or name not in ENGINES:
        known = ['"auto"', *(f'"{one}"' for one in ENGINES)]
        raise ValueError(f"engine must be {', '.join(known[:-1])} or {known[-1]}, got {name!r}")
    return ENGINES[name]


for _engine in (CompiledEngine(), XGBoostEngine(), ReferenceEngine()):
    register(_engine)
