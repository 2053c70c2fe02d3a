"""Models as ONNX: the operator TreeEnsemble of ai.onnx.ml 5, and the formula of `scoring` as ordinary operators.

Everything is in double precision, so that rows fall on the same side of every threshold as here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.export.scoring import BELOW_CATEGORIES, Scoring
from untwist.export.terms import Term
from untwist.optional import import_optional

#: The version of ONNX's operators, which onnxruntime 1.21 and newer run.
OPSET = 21

#: The version of ai.onnx.ml, the first with the operator TreeEnsemble.
TREE_OPSET = 5

#: The version of the file format.
IR_VERSION = 10

#: ONNX's number for the type int64.
INT64 = 7

#: The mode of a node that sends rows up to its threshold to the left.
AT_MOST = 0

#: The mode of a node that sends the members of a set to the left.
MEMBER = 6

#: What TreeEnsemble is told to do with the leaves that a row reaches: to add them up, and nothing after that.
SUM_OF_LEAVES = {"aggregate_function": 1, "post_transform": 0}

#: ONNX's names of the operations of `Writer`.
OPERATORS = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "@": "MatMul",
    "abs": "Abs",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "max": "Max",
    "min": "Min",
    "tanh": "Tanh",
}

#: ONNX's names of the operations over all classes.
REDUCTIONS = {"total": "ReduceSum", "largest": "ReduceMax"}

#: Where a leaf has a value for each class, this many values of a row are looked up and added up at once, about.
VALUES_AT_ONCE = 1024


def to_onnx(model: Any) -> Any:
    """Return a model as ONNX.

    Its input "X" are rows of `numbers`; its outputs "label", "probabilities" and "decision" are what `predict`,
    `predict_proba` and `decision_function` give.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        A fitted model whose classes are numbers, Booleans or text.

    Returns
    -------
    onnx.ModelProto
        The model, ready to be saved or to predict.
    """
    onnx = import_optional("onnx", "to_onnx", extra="export")
    scoring = Scoring.from_model(model)
    graph = _Graph(onnx.helper, scoring)
    classes = _make_labels(scoring.classes)
    several = len(classes) > 2
    scores = _add_scores(graph, scoring, onnx.numpy_helper.from_array)
    decision, posterior = scoring.formula.write_clean(Term(graph, scores, several))
    graph.add_node("Identity", decision.text, output="decision")
    best = _add_several_classes(graph, posterior) if several else _add_two_classes(graph, posterior)
    graph.add_node("Gather", graph.add_constant(classes), best, output="label")

    def declare(name: str, kind: int, *columns: int) -> Any:
        return onnx.helper.make_tensor_value_info(name, kind, ["rows", *columns])

    label_kind = onnx.helper.np_dtype_to_tensor_dtype(classes.dtype)
    double = onnx.TensorProto.DOUBLE
    decision_columns = [len(classes)] if several else []
    made = onnx.helper.make_graph(
        graph.nodes,
        "untwist",
        [declare("X", double, scoring.forests[0].n_features)],
        [
            declare("label", label_kind),
            declare("probabilities", double, len(classes)),
            declare("decision", double, *decision_columns),
        ],
        initializer=[onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    return onnx.helper.make_model(
        made,
        producer_name="untwist",
        doc_string="\n".join(scoring.describe()),
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", TREE_OPSET)],
    )


def _add_two_classes(graph: _Graph, posterior: Term) -> str:
    """Add the probabilities of two classes; return the index of the one that is chosen."""
    columns = [
        graph.add_node("Unsqueeze", each.text, graph.add_constant(np.array([1])))
        for each in (1.0 - posterior, posterior)
    ]
    graph.add_node("Concat", *columns, axis=1, output="probabilities")
    is_second = graph.add_node("Greater", "decision", graph.add_constant(0.0))
    return graph.add_node("Cast", is_second, to=INT64)


def _add_several_classes(graph: _Graph, posterior: Term) -> str:
    """Add the probabilities of more than two classes; return the index of the one that is chosen."""
    graph.add_node("Identity", posterior.text, output="probabilities")
    return graph.add_node("ArgMax", "decision", axis=1, keepdims=0)


def _add_scores(graph: _Graph, scoring: Scoring, make_tensor: Any) -> str:
    """Add the trees, and return the name of the scores: one for two classes, else a column per class."""
    if scoring.has_vectors:
        return _add_shared_scores(graph, scoring.forests[0], make_tensor)
    parts = [_describe_forest(forest, target) for target, forest in enumerate(scoring.forests)]
    trees = _describe_trees(parts, len(parts), make_tensor)
    scores = graph.add_node("TreeEnsemble", "X", domain="ai.onnx.ml", **trees)
    return scores if len(parts) > 1 else graph.add_node("Reshape", scores, graph.add_constant(np.array([-1])))


def _add_shared_scores(graph: _Graph, forest: Forest, make_tensor: Any) -> str:
    """Add trees whose leaves have a value for each class.

    A leaf of TreeEnsemble has one number. Here it is the place of the leaf's values in a table, with an output per
    tree; some trees at a time, the values are looked up there and added up.
    """
    is_leaf = forest.feature < 0
    values = forest.value[is_leaf]
    places = replace(forest, value=np.where(is_leaf, np.cumsum(is_leaf) - 1.0, 0.0))
    part = _describe_forest(places, 0)
    part["leaf_targetids"] = np.repeat(np.arange(len(forest)), np.diff(forest.offset))[is_leaf]
    trees = _describe_trees([part], len(forest), make_tensor)
    reached = graph.add_node("TreeEnsemble", "X", domain="ai.onnx.ml", **trees)
    reached = graph.add_node("Cast", reached, to=INT64)
    table = graph.add_constant(values)
    columns = graph.add_constant(np.array([1]))
    n_at_once = max(1, VALUES_AT_ONCE // values.shape[1])
    scores = ""
    for first in range(0, len(forest), n_at_once):
        ends = [graph.add_constant(np.array([end])) for end in (first, first + n_at_once)]
        found = graph.add_node("Gather", table, graph.add_node("Slice", reached, *ends, columns))
        added = graph.add_node("ReduceSum", found, columns, keepdims=0)
        scores = graph.add_node("Add", scores, added) if scores else added
    return scores


class _Graph:
    """Nodes of a graph, one after the other; a `Writer`, whose terms are the outputs of nodes."""

    def __init__(self, helper: Any, scoring: Scoring) -> None:
        self.helper = helper
        self.table = scoring.formula.table
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def add_node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def add_constant(self, value: Any) -> str:
        """Add a constant and return its name."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def write(self, operation: str, *terms: Term | float | Array) -> Term:
        """Add the node of an operation."""
        first, *others = (each.text if isinstance(each, Term) else self._add_operand(each) for each in terms)
        if operation in REDUCTIONS:
            return Term(self, self.add_node(REDUCTIONS[operation], first, self.add_constant(np.array([1])), keepdims=1))
        if operation == "copysign":  # It is 0 where the second term is 0, whatever the sign of that.
            return Term(self, self.add_node("Mul", first, self.add_node("Sign", *others)))
        if operation == "look_up":
            index = self.add_node("Cast", first, to=INT64)
            return Term(self, self.add_node("Gather", self.add_constant(self.table), index))
        return Term(self, self.add_node(OPERATORS[operation], first, *others))

    def _add_operand(self, value: float | Array) -> str:
        return self.add_constant(np.asarray(value, dtype=np.float64))

    def define(self, _name: str, term: Term) -> Term:
        """Return the term: the output of a node has a name already."""
        return term


def _make_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels as a tensor can hold them."""
    if classes.dtype.kind == "u" and int(classes.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"ONNX labels are whole numbers below 2^63, got {classes.max()}")
    if classes.dtype.kind in "biuf":
        return classes.astype({"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64))
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    raise ValueError(f"ONNX knows labels of numbers, Booleans or text, got {classes[:5]}")


def _describe_trees(parts: list[dict[str, NDArray[Any]]], n_targets: int, make_tensor: Any) -> dict[str, Any]:
    """Return the attributes of TreeEnsemble: splits and leaves in lists of their own, numbered through all forests.

    A tree must have a split: one that is a leaf gets a split with this leaf on both sides.
    """
    n_splits = 0
    n_leaves = 0
    for part in parts:
        for side in ("true", "false"):
            part[f"nodes_{side}nodeids"] += np.where(part[f"nodes_{side}leafs"], n_leaves, n_splits)
        part["tree_roots"] += n_splits
        n_splits += len(part["nodes_modes"])
        n_leaves += len(part["leaf_weights"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    tensors = {"nodes_modes": np.uint8, "nodes_splits": np.float64, "leaf_weights": np.float64}
    sets = joined.pop("membership_values")
    attributes = {name: make_tensor(joined.pop(name).astype(kind)) for name, kind in tensors.items()}
    if len(sets):
        attributes["membership_values"] = make_tensor(sets)
    attributes |= {name: values.astype(np.int64).tolist() for name, values in joined.items()}
    return attributes | {"n_targets": n_targets, **SUM_OF_LEAVES}


def _describe_forest(forest: Forest, target: int) -> dict[str, NDArray[Any]]:
    """Return the same of one forest, numbered from 0."""
    is_leaf = forest.feature < 0
    number_among_its_kind = np.where(is_leaf, np.cumsum(is_leaf), np.cumsum(~is_leaf)) - 1
    root = forest.offset[:-1]
    bare = root[is_leaf[root]]
    split = np.flatnonzero(~is_leaf)
    left = (forest.left + np.repeat(root, np.diff(forest.offset)))[split]
    sets = {node: forest.categories_going_left(node) for node in split[forest.set[split] >= 0]}
    empty = [node for node, categories in sets.items() if not categories]
    threshold = forest.threshold.copy()
    threshold[[*empty]] = BELOW_CATEGORIES
    mode = np.where(forest.set >= 0, MEMBER, AT_MOST)
    mode[[*empty]] = AT_MOST
    roots = number_among_its_kind[root]
    roots[is_leaf[root]] = len(split) + np.arange(len(bare))

    def with_bare(values: NDArray[Any], bare_values: Any) -> NDArray[Any]:
        return np.concatenate([values, np.broadcast_to(bare_values, len(bare))])

    return {
        "tree_roots": roots,
        "nodes_featureids": with_bare(forest.feature[split], 0),
        "nodes_modes": with_bare(mode[split], AT_MOST),
        "nodes_splits": with_bare(np.where(mode == MEMBER, 0.0, threshold)[split], 0.0),
        "nodes_missing_value_tracks_true": with_bare(forest.missing_left[split], 0),
        "nodes_truenodeids": with_bare(number_among_its_kind[left], number_among_its_kind[bare]),
        "nodes_trueleafs": with_bare(is_leaf[left], True),
        "nodes_falsenodeids": with_bare(number_among_its_kind[left + 1], number_among_its_kind[bare]),
        "nodes_falseleafs": with_bare(is_leaf[left + 1], True),
        "leaf_weights": forest.value[is_leaf],
        "leaf_targetids": np.full(np.count_nonzero(is_leaf), target),
        "membership_values": _list_members(sets.values()),
    }


def _list_members(sets: Iterable[list[int]]) -> Array:
    """Return the sets of categories one after the other, each ended by NaN; empty ones are left out."""
    return np.array([member for categories in sets if categories for member in [*categories, np.nan]])
