"""Any classifier untwisted: clones of it judge rows that they have not seen, and their mean posterior is corrected.

- `rows`: labels, weights, folds and what else is known of rows, with a table or without.
- `model`: what a fit leaves behind.
- `fitting`: the fit, also with sources and with what a person has found.
"""
