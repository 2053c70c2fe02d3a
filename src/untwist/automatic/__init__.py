"""The automatic mode: what the user left open, chosen from the twisted data alone by folds over one binned table.

The room stands on `training_data`, `boosting` and `model`; only the classifier and the audit call it.
"""
