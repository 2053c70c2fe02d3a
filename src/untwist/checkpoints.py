"""Long fits that can be stopped, and go on from what was saved last."""

from untwist.files.checkpoints import (
    Checkpoint,
    resumed,
)

__all__ = ["Checkpoint", "resumed"]
