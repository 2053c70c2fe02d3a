"""Models as ONNX: the operator TreeEnsemble of ai.onnx.ml 5, and the formula of `scoring` as ordinary operators.

Everything is in double precision, so that rows fall on the same side of every threshold as here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.boosting.forest import Forest
from untwist.classifier import PILBoostClassifier
from untwist.export.scoring import Scoring, Term, members, needed

__all__ = ["to_onnx"]

OPSET, TREE_OPSET, IR_VERSION = 21, 5, 10  # onnxruntime 1.21 and newer run these
AT_MOST, MEMBER = 0, 6  # modes of a node
OPERATORS = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "abs": "Abs",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "max": "Max",
    "min": "Min",
    "tanh": "Tanh",
}


def to_onnx(model: PILBoostClassifier) -> Any:
    """A model as an ONNX ModelProto: "X" (rows of `numbers`) to "label", "probabilities" and "decision".

    They are what `predict`, `predict_proba` and `decision_function` give. Classes must be numbers, Booleans or text.
    """
    onnx = needed("onnx", "to_onnx")
    scoring = Scoring.of(model)
    classes, several = _classes(scoring.classes), len(scoring.classes) > 2
    kinds = onnx.TensorProto
    graph = _Graph(onnx.helper, scoring)
    trees = _ensemble(scoring, onnx.numpy_helper.from_array)
    scores = graph.node("TreeEnsemble", "X", domain="ai.onnx.ml", **trees)
    if not several:
        scores = graph.node("Reshape", scores, graph.constant(np.array([-1])))
    decision, posterior = scoring.clean(Term(graph, scores))
    graph.node("Identity", decision.text, output="decision")
    if several:
        shares = scoring.share(posterior, decision).text
        total = graph.node("ReduceSum", shares, graph.constant(np.array([1])), keepdims=1)
        graph.node("Div", shares, total, output="probabilities")
        best = graph.node("ArgMax", "decision", axis=1, keepdims=0)
    else:
        both = [
            graph.node("Unsqueeze", each.text, graph.constant(np.array([1]))) for each in (1.0 - posterior, posterior)
        ]
        graph.node("Concat", *both, axis=1, output="probabilities")
        best = graph.node("Cast", graph.node("Greater", "decision", graph.constant(0.0)), to=kinds.INT64)
    graph.node("Gather", graph.constant(classes), best, output="label")
    columns, width = [len(scoring.classes)], [scoring.forests[0].n_features]
    made = onnx.helper.make_graph(
        graph.nodes,
        "untwist",
        [onnx.helper.make_tensor_value_info("X", kinds.DOUBLE, ["rows", *width])],
        [
            onnx.helper.make_tensor_value_info("label", onnx.helper.np_dtype_to_tensor_dtype(classes.dtype), ["rows"]),
            onnx.helper.make_tensor_value_info("probabilities", kinds.DOUBLE, ["rows", *columns]),
            onnx.helper.make_tensor_value_info("decision", kinds.DOUBLE, ["rows", *(columns if several else [])]),
        ],
        initializer=[onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    return onnx.helper.make_model(
        made,
        producer_name="untwist",
        doc_string="\n".join(scoring.description()),
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", TREE_OPSET)],
    )


class _Graph:
    """Nodes of a graph, one after the other; a `Writer`, whose terms are the outputs of nodes."""

    def __init__(self, helper: Any, scoring: Scoring) -> None:
        self.helper, self.table = helper, scoring.table
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """A further node; its output."""
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, value: Any) -> str:
        """The name of a constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def write(self, operation: str, *terms: Term | float) -> Term:
        """As Writer says."""
        first, *others = (each.text if isinstance(each, Term) else self.constant(float(each)) for each in terms)
        if operation == "copysign":  # of 0 it is 0, whatever the sign
            return Term(self, self.node("Mul", first, self.node("Sign", *others)))
        if operation == "look_up":
            return Term(self, self.node("Gather", self.constant(self.table), self.node("Cast", first, to=7)))
        return Term(self, self.node(OPERATORS[operation], first, *others))

    def named(self, _name: str, term: Term) -> Term:
        """As Writer says: an output has a name."""
        return term


def _classes(classes: NDArray[Any]) -> NDArray[Any]:
    """The labels as a tensor can hold them."""
    if classes.dtype.kind in "biuf":
        return classes.astype({"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64))
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    raise ValueError(f"ONNX knows labels of numbers, Booleans or text, got {classes[:5]}")


def _ensemble(scoring: Scoring, tensor: Any) -> dict[str, Any]:
    """The attributes of TreeEnsemble: splits and leaves in lists of their own, numbered through all trees.

    A tree must have a split: one that is a leaf gets a split with this leaf on both sides.
    """
    parts = [_parts(forest, target) for target, forest in enumerate(scoring.forests)]
    splits, leaves = 0, 0
    for part in parts:
        for side in ("true", "false"):
            part[f"nodes_{side}nodeids"] += np.where(part[f"nodes_{side}leafs"], leaves, splits)
        part["tree_roots"] += splits
        splits, leaves = splits + len(part["nodes_modes"]), leaves + len(part["leaf_weights"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    tensors = {"nodes_modes": np.uint8, "nodes_splits": np.float64, "leaf_weights": np.float64}
    sets = joined.pop("membership_values")
    attributes = {name: tensor(joined.pop(name).astype(kind)) for name, kind in tensors.items()}
    if len(sets):
        attributes["membership_values"] = tensor(sets)
    attributes |= {name: values.astype(np.int64).tolist() for name, values in joined.items()}
    return attributes | {"n_targets": len(scoring.forests), "aggregate_function": 1, "post_transform": 0}


def _parts(forest: Forest, target: int) -> dict[str, NDArray[Any]]:
    """The same of one forest, numbered from 0."""
    leaf = forest.feature < 0
    number = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf)) - 1  # of a node among the splits or the leaves
    root = forest.offset[:-1]
    bare = root[leaf[root]]
    count, split = np.count_nonzero(~leaf), np.flatnonzero(~leaf)
    left = (forest.left + np.repeat(root, np.diff(forest.offset)))[split]
    sets = {node: members(forest, node) for node in split[forest.set[split] >= 0]}
    empty = [node for node, inside in sets.items() if not inside]
    threshold = forest.threshold.copy()
    threshold[[*empty]] = -1.0  # no category is below 0
    mode = np.where(forest.set >= 0, MEMBER, AT_MOST)
    mode[[*empty]] = AT_MOST
    roots = number[root]
    roots[leaf[root]] = count + np.arange(len(bare))

    def with_bare(values: NDArray[Any], bare_values: Any) -> NDArray[Any]:
        return np.concatenate([values, np.broadcast_to(bare_values, len(bare))])

    return {
        "tree_roots": roots,
        "nodes_featureids": with_bare(forest.feature[split], 0),
        "nodes_modes": with_bare(mode[split], AT_MOST),
        "nodes_splits": with_bare(np.where(mode == MEMBER, 0.0, threshold)[split], 0.0),
        "nodes_missing_value_tracks_true": with_bare(forest.missing_left[split], 0),
        "nodes_truenodeids": with_bare(number[left], number[bare]),
        "nodes_trueleafs": with_bare(leaf[left], True),
        "nodes_falsenodeids": with_bare(number[left + 1], number[bare]),
        "nodes_falseleafs": with_bare(leaf[left + 1], True),
        "leaf_weights": forest.value[leaf],
        "leaf_targetids": np.full(np.count_nonzero(leaf), target),
        "membership_values": np.array([each for inside in sets.values() if inside for each in [*inside, np.nan]]),
    }
