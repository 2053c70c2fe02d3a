"""Audits of a few rows that nothing is fitted for: posteriors are drawn, and the noise is given."""

from dataclasses import fields, replace

import numpy as np

from helpers.tickets import make_components, spread_noise
from untwist.audit.context import AuditedTable, Judge, RowContext
from untwist.audit.judging import judge_alike
from untwist.audit.labels import LabelAudit
from untwist.noise.sources import NoiseBySource
from untwist.noise.two_classes import TwoClassNoise


def make_pairs(found=True):
    """Noise of three pairs of rates that are estimated, so that they have intervals."""
    grid = np.array([[0.05, 0.1, 0.2], [0.1, 0.15, 0.3]])
    weights = np.array([0.3, 0.5, 0.2])
    return TwoClassNoise.from_grid(grid, weights, np.ones(3), 9.0, found=found, clearest=1e-3, uneven_limit=0.07)


def make_matrices(n_classes, found=True):
    """Noise that is the same in every class, a little more and a little less of it."""
    return replace(make_components(spread_noise(n_classes, 0.2)), found=found)


def make_sources(noise, n_classes, seed=0, names=("ann", "bob", "eve")):
    """Sources with matrices and intervals of their own, none of which stands out."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.05, 0.4, len(names))
    matrices = np.array([spread_noise(n_classes, rate) for rate in rates])
    matrices[:, 0] = 0.5 * (matrices[:, 0] + np.eye(n_classes)[0])  # The first class is mislabelled less often.
    class_shares = 1.0 - np.diagonal(matrices, axis1=1, axis2=2)
    return NoiseBySource(
        names=np.array(names),
        counts=rng.uniform(10.0, 60.0, len(names)),
        matrices=matrices,
        common=matrices.mean(axis=0),
        shares=rates,
        intervals=np.column_stack([0.6 * rates, 1.5 * rates]),
        class_intervals=np.stack([0.5 * class_shares, 1.4 * class_shares], axis=2),
        stands_out=np.zeros(len(names), dtype=bool),
        reliability=np.ones(len(names)),
        evidence=0.0,
        noise=noise,
    )


def draw_rows(n_classes, seed=0, n=60):
    """Posteriors, labels, weights of which some are 0, and the generator."""
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.full(n_classes, 0.7), n).clip(1e-3)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior, rng.integers(0, n_classes, n), rng.integers(0, 3, n).astype(float), rng


def prepare(noise, posterior):
    """The posterior as methods of the noise take it."""
    return logit(posterior[:, 1]) if isinstance(noise, Untwisting) else posterior


def change(one, **changes):
    """The same with other values; of an audit also with others in its table, its judge and the context of its rows."""
    if isinstance(one, LabelAudit):
        for part, kind in (("table", AuditedTable), ("judge", Judge), ("context", RowContext)):
            named = {field.name for field in fields(kind)} - {field.name for field in fields(LabelAudit)}
            inside = {name: changes.pop(name) for name in named & set(changes)}
            if inside:
                changes[part] = replace(getattr(one, part), **inside)
    return replace(one, **changes)


def make_audit(n_classes=2, found=True, n=60, **changes):
    """The audit of labels "a", "b" and so on by posteriors that are drawn."""
    noise = make_pairs(found) if n_classes == 2 else make_matrices(n_classes, found)
    posterior, labels, _, _ = draw_rows(n_classes, n=n)
    classes = np.array(list("abcdefgh")[:n_classes])
    judged = judge_alike(noise, posterior, labels, np.ones(n))
    audit = LabelAudit(
        classes=classes,
        given=classes[labels],
        predicted=classes[judged.predicted],
        posterior=posterior,
        wrong=judged.wrong,
        noise=noise,
        noise_rate=judged.share,
        rate_by_label=dict(zip(classes.tolist(), judged.share_by_label, strict=True)),
        weight=np.ones(n),
        model=None,
        judge=Judge("somebody"),
    )
    return change(audit, **changes)


def make_audit_by_source(n_classes=2, found=True, n=60, **changes):
    """The same with sources, unknown in one row of five, and three labels for each item."""
    audit = make_audit(n_classes, found, n)
    names = np.array(["ann", "bob", "eve", None], dtype=object)
    item = np.arange(n) // 3
    by_source = make_sources(audit.noise, n_classes)
    posterior = audit.posterior[item * 3]
    source = names[np.where(np.arange(n) % 5 == 0, 3, np.arange(n) % 3)]
    return change(audit, **{"posterior": posterior, "source": source, "item": item, "by_source": by_source} | changes)
