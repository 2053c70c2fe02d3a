"""The alpha-loss of logits as a PyTorch module."""

from __future__ import annotations

from functools import cache
from typing import Any

from untwist.objectives.alpha_loss import check_alpha
from untwist.optional import import_optional

__all__ = ["torch_loss"]


def torch_loss(alpha: float, reduction: str = "mean", weight: Any = None) -> Any:
    """Return the alpha-loss of logits as a PyTorch module, to replace BCEWithLogitsLoss and CrossEntropyLoss.

    Targets of the logits' shape are 0, 1 or between, each element a question of two classes; targets without the
    class dimension, the second (as of CrossEntropyLoss), are classes 0, 1, ...

    Parameters
    ----------
    alpha : float
        Not 0; negative for two classes only.
    reduction : {"mean", "sum", "none"}, default "mean"
        What to make of the losses of all targets.
    weight : array_like, optional
        A number per class; the mean is then a weighted one.

    Returns
    -------
    torch.nn.Module
        Called with logits and targets.
    """
    return _make_torch_module()(alpha, reduction, weight)


@cache
def _make_torch_module() -> Any:
    """Return the class of the module, made when PyTorch is there to subclass."""
    torch = import_optional("torch", "torch_loss", needs="PyTorch")
    base: Any = torch.nn.Module

    class AlphaLossModule(base):
        """See `torch_loss`."""

        weight: Any

        def __init__(self, alpha: float, reduction: str, weight: Any) -> None:
            super().__init__()
            if reduction not in ("mean", "sum", "none"):
                raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
            check_alpha(alpha)
            self.alpha = alpha
            self.reduction = reduction
            # The factor 1.0 makes floats of whole numbers too.
            self.register_buffer("weight", None if weight is None else torch.as_tensor(weight) * 1.0)

        def forward(self, logits: Any, target: Any) -> Any:
            find_losses = _weigh_two_classes if logits.shape == target.shape else _weigh_classes
            losses, weight = find_losses(torch, self.alpha, logits, target, self.weight)
            if self.reduction == "none":
                return losses
            if self.reduction == "sum":
                return losses.sum()
            return losses.mean() if weight is None else losses.sum() / weight.sum()

        def extra_repr(self) -> str:
            weight = "" if self.weight is None else f", weight={self.weight.tolist()}"
            return f"alpha={self.alpha!r}, reduction={self.reduction!r}{weight}"

        def __reduce__(self) -> Any:
            # Pickle could not find the class, which is made inside of a function.
            return torch_loss, (self.alpha, self.reduction, self.weight)

    return AlphaLossModule


def _weigh_two_classes(torch: Any, alpha: float, logits: Any, target: Any, weight: Any) -> tuple[Any, Any]:
    """Return the loss of each logit for a target between 0 and 1, and what each weighs if classes have weights."""
    _refuse(target, ~((target >= 0) & (target <= 1)), "target must lie in [0, 1]")
    y = target.to(logits.dtype)
    towards = logits if alpha > 0 else -logits
    log_sigmoid = torch.nn.functional.logsigmoid
    # A part that does not count is asked at 0: elsewhere it could be infinite, and 0 * inf is no number.
    cost_pos = _find_cost(torch, alpha, log_sigmoid(towards.where(y > 0, torch.zeros_like(logits))))
    cost_neg = _find_cost(torch, alpha, log_sigmoid(-towards.where(y < 1, torch.zeros_like(logits))))
    if weight is None:
        return y * cost_pos + (1 - y) * cost_neg, None
    of_class = _check_weight(weight, 2, logits)
    pos, neg = y * of_class[1], (1 - y) * of_class[0]
    return pos * cost_pos + neg * cost_neg, pos + neg


def _weigh_classes(torch: Any, alpha: float, logits: Any, target: Any, weight: Any) -> tuple[Any, Any]:
    """Return the loss of the logits of all classes for each target, and what each weighs if classes have weights."""
    axis = min(1, logits.ndim - 1)
    rest = logits.shape[:axis] + logits.shape[axis + 1 :]
    if logits.ndim == 0 or logits.shape[axis] < 2 or target.shape != rest or target.is_floating_point():
        raise ValueError(
            "target must have the shape of the logits, or that without their classes and integers, got "
            f"{tuple(logits.shape)} and {tuple(target.shape)} of {target.dtype}"
        )
    check_alpha(alpha, 2)
    classes = logits.shape[axis]
    y = target.long()
    _refuse(target, (target < 0) | (target >= classes), f"target must be one of 0 to {classes - 1}")
    log_p = torch.nn.functional.log_softmax(logits, axis).gather(axis, y.unsqueeze(axis)).squeeze(axis)
    cost = _find_cost(torch, alpha, log_p)
    if weight is None:
        return cost, None
    of_row = _check_weight(weight, classes, logits)[y]
    return of_row * cost, of_row


def _find_cost(torch: Any, alpha: float, log_p: Any) -> Any:
    """Return the loss of the logarithm of the probability of a label."""
    exponent = check_alpha(alpha)
    if exponent == 0:
        return -log_p
    power = exponent * log_p
    # Below -1/2 expm1 is not needed, and its derivative, expm1 + 1, would round small ones away.
    return -torch.where(power > -0.5, torch.expm1(power), torch.exp(power) - 1.0) / exponent


def _check_weight(weight: Any, classes: int, logits: Any) -> Any:
    """Return the weight of each class in the type of the logits."""
    if weight.shape != (classes,):
        raise ValueError(f"weight must be {classes} numbers, one a class, got shape {tuple(weight.shape)}")
    return weight.to(logits.dtype)


def _refuse(target: Any, wrong: Any, message: str) -> None:
    """Raise a ValueError where some targets are wrong; on another device it would take a wait to look at the values."""
    if target.device.type == "cpu" and bool(wrong.any()):
        raise ValueError(f"{message}, got {target[wrong].flatten()[0].item():g}")
