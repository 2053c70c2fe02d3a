"""How many labels are wrong, read off the twisted data alone, and what undoes it.

- `model`: what is believed of the noise, for any number of classes, and what follows from it.
- `two_classes`: the noise of two classes, by all rates that fit.
- `several_classes`: the noise of several classes, by all transition matrices that fit.
- `rates`: estimates how many labels of each of two classes are wrong, from posteriors out of fold.
- `transitions`: estimates which label stands for which of several classes how often, from posteriors out of fold.
- `plausibility`, `families`, `climbing`: what it maximises, over which matrices, and how.
- `sources`: estimates how noisy the labels of each source are, and the truth where several sources labelled one item.
- `votes`, `hierarchy`, `components`: the labels by source and item, the prior that sources share, and the noise of all
  labels as components that the labels of sources weigh again.
- `dependence`: finds how many rows count as one where those of a group err together.
- `posterior`: takes the scores of a boosted model to twisted and clean posteriors.
- `paper`: the three ways to alpha that the paper has.
- `estimate`: how noisy labels are, in words and shares.

The noise of two classes is described by the share of each that bears the other label: `rate_neg` of the negatives,
`rate_pos` of the positives. That of several is a transition matrix: a row per true class, a column per label.
"""

from untwist.noise.model import NoiseModel
from untwist.noise.paper import MenonEstimate, menon, original_learned, taylor

__all__ = ["MenonEstimate", "NoiseModel", "menon", "original_learned", "taylor"]
