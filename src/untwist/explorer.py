"""Is a loss family twist-proper? A search that shows it (Definition "def:TwistProper", Lemma "lemFocalLoss")."""

from untwist.theory.explorer import (
    ALPHA,
    FOCAL,
    SUPER,
    Exploration,
    LossFamily,
    explore,
)

__all__ = ["ALPHA", "FOCAL", "SUPER", "Exploration", "LossFamily", "explore"]
