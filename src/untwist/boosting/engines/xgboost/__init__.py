"""The engine over XGBoost: its tree learners grow the trees, on a GPU or on the rows of many workers.

- `engine`: the engine as `untwist.boosting.engines.engine` asks for it.
- `dataset`, `booster`: rows as XGBoost takes them, and rounds of boosting over them.
- `trees`: trees of XGBoost as arrays; `weights`: boosting weights on the CPU or on a GPU.

XGBoost itself is optional and imported when it is needed.
"""
