"""Patients with several rows each, which nearly repeat each other, and whose label is one."""

import numpy as np


def draw_patients(n_patients=60, n_rows=30, n_wrong=12, spread=0.01, columns=6, seed=0):
    """Rows, labels, the patient of each row, and the patients whose label is wrong.

    The two kinds of patients lie three standard deviations apart in two of the columns.
    """
    rng = np.random.default_rng(seed)
    truth = np.arange(n_patients) % 2
    places = rng.normal(size=(n_patients, columns))
    places[:, :2] += 3.0 * truth[:, None]
    labels = truth.copy()
    wrong = rng.choice(n_patients, n_wrong, replace=False)
    labels[wrong] = 1 - labels[wrong]
    patient = np.repeat(np.arange(n_patients), n_rows)
    X = places[patient] + spread * rng.normal(size=(len(patient), columns))
    return X, labels[patient], patient, wrong
