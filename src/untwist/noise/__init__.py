"""How many labels are wrong, read off the twisted data alone, and what undoes it."""

from untwist.noise.rates import (
    MenonEstimate,
    NoiseEstimate,
    Untwisting,
    estimate_noise,
    menon,
    original_learned,
    taylor,
)

__all__ = ["MenonEstimate", "NoiseEstimate", "Untwisting", "estimate_noise", "menon", "original_learned", "taylor"]
