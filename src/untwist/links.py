"""Links between scores and posteriors (Sections 5 and "Pseudo-Inverse Link" of the paper)."""

from untwist.theory.links import (
    CanonicalLink,
    ClippedLink,
    HalfLogitLink,
    Link,
    default_step_size,
)

__all__ = ["CanonicalLink", "ClippedLink", "HalfLogitLink", "Link", "default_step_size"]
