"""How many labels are wrong, read off the twisted data alone, and what undoes it.

- `rates`: estimates how many labels of each of two classes are wrong, from posteriors out of fold.
- `untwisting`: takes the twisted posterior of two classes to the clean one, by all rates that fit.
- `transitions`: estimates which label stands for which of several classes how often, from posteriors out of fold.
- `plausibility`, `families`, `climbing`: what it maximises, over which matrices, and how.
- `matrix`: takes the twisted posterior of several classes to the clean one, by all transition matrices that fit.
- `sources`: estimates how noisy the labels of each source are, and the truth where several sources labelled one item.
- `votes`, `hierarchy`, `components`: the labels by source and item, the prior that sources share, and the noise of all
  labels as components that the labels of sources weigh again.
- `dependence`: finds how many rows count as one where those of a group err together.
- `posterior`: takes the scores of a boosted model to twisted and clean posteriors.
- `reviews`: weighs rates or matrices again by what a person found, and says what a known label is worth.
- `paper`: the three ways to alpha that the paper has.
- `estimate`: what all of them answer for two classes.

The noise of two classes is described by the share of each that bears the other label: `rate_neg` of the negatives,
`rate_pos` of the positives. That of several is a transition matrix: a row per true class, a column per label.
"""

from untwist.noise.estimate import NoiseEstimate
from untwist.noise.paper import MenonEstimate, menon, original_learned, taylor
from untwist.noise.rates import estimate_noise
from untwist.noise.untwisting import Untwisting

__all__ = ["MenonEstimate", "NoiseEstimate", "Untwisting", "estimate_noise", "menon", "original_learned", "taylor"]
