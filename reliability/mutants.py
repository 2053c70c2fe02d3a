"""Faults to inject into a module, one at a time: `list_mutants` finds them, `mutate` makes the tree with one.

A fault changes an operator, a comparison, a number, a condition, a function into its opposite (min and max, any and
all), the branches of a choice, a returned value, or drops a statement. What no test should look at is left alone:
annotations, docstrings, the words of messages, representations, decorators, suppressed warnings.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

COMPARISONS: dict[
    type[ast.cmpop], tuple[type[ast.cmpop], ...]
] = {  # A comparison becomes its neighbour or its opposite.
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
PAIRS = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("any", "all"),
    ("zeros", "ones"),
    ("floor", "ceil"),
    ("isposinf", "isneginf"),
    ("exp", "expm1"),
    ("log", "log1p"),
    ("first", "last"),
    ("lower", "upper"),
]
OPPOSITES = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
UNSEEN = {"__repr__", "__str__", "__hash__", "__reduce__", "_repr_html_"}
SILENT = {"errstate", "warn", "catch_warnings"}  # These calls only make or hide warnings.


@dataclass(frozen=True)
class Mutant:
    """The `number`-th fault of the node at place `node` of its tree; `key` says it in words that outlive an edit."""

    module: str
    where: str
    line: int
    node: int
    number: int
    key: str
    alone: bool  # It is outside of the bodies of functions, so the module must be made anew to have it.


def list_mutants(module: str, source: str) -> list[Mutant]:
    """All faults of a module, in the order of its lines."""
    tree = ast.parse(source)
    places = {id(node): place for place, node in enumerate(ast.walk(tree))}
    found, seen = [], Counter[str]()
    for node, around in _walk(tree, Around()):
        for number, change in enumerate(_list_changes(node)):
            before, after = _describe(around.statement or node, node, change)
            key = f"{around.name}: {before} => {after}"
            seen[key] += 1
            if seen[key] > 1:
                key += f" #{seen[key]}"
            found.append(Mutant(module, around.name, node.lineno, places[id(node)], number, key, around.alone))
    return sorted(found, key=lambda one: one.line)


def mutate(source: str, mutant: Mutant) -> ast.Module:
    """The tree of the module with the fault, lines where they were."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    _put(tree, nodes[mutant.node], list(_list_changes(nodes[mutant.node]))[mutant.number])
    return ast.fix_missing_locations(tree)


@dataclass(frozen=True)
class Around:
    """What is around a node: classes and functions, whether no function's body is, the statement."""

    name: str = "the module"
    alone: bool = True
    statement: ast.stmt | None = None

    def inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Around:
        """Around what the definition holds."""
        return replace(self, name=node.name if self.name == "the module" else f"{self.name}.{node.name}")


def _walk(node: ast.AST, around: Around) -> Iterator[tuple[Any, Around]]:
    """The nodes that may change."""
    if isinstance(node, ast.stmt):
        around = replace(around, statement=node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.name in UNSEEN:
            return
        around = around.inside(node)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                yield from _walk(default, around)
        early = around.alone and node.name == "__init_subclass__"  # Classes call it as the module is made.
        for statement in node.body:
            yield from _walk(statement, replace(around, alone=early))
        return
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            yield from _walk(statement, around.inside(node))
        return
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
        return
    if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "__all__" for one in node.targets):
        return
    if isinstance(node, ast.Call) and _name(node.func) in SILENT:
        return
    yield node, around
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "ctx", "returns") or (isinstance(node, ast.Raise) and name in ("exc", "cause")):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.keyword) and child.arg == "stacklevel"):
                yield from _walk(child, around)


def _list_changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield _copy(node, ops=[*node.ops[:place], other(), *node.ops[place + 1 :]])
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        if not (isinstance(node, ast.BinOp) and _is_text(node.left)):
            yield _copy(node, op=OPERATORS[type(node.op)]())
        if isinstance(node, ast.AugAssign):
            yield ast.copy_location(ast.Pass(), node)
    elif isinstance(node, ast.BoolOp):
        yield _copy(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield _copy(node, value=not node.value)
        elif isinstance(node.value, (int, float)):
            yield _copy(node, value=node.value + 1)
    elif isinstance(node, ast.Call):
        yield from _change_calls(node)
    elif isinstance(node, ast.IfExp):
        yield _copy(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, (ast.If, ast.While)):
        if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):  # These are turned round as comparisons.
            yield _copy(node, test=ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test))
    elif isinstance(node, ast.Return):
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield _copy(node, value=ast.copy_location(ast.Constant(None), node))
    elif isinstance(node, (ast.Raise, ast.Break, ast.Continue)) or _is_deed(node):
        yield ast.copy_location(ast.Pass(), node)


def _change_calls(node: ast.Call) -> Iterator[ast.AST]:
    name = _name(node.func)
    if name in OPPOSITES:
        function = copy.deepcopy(node.func)
        setattr(function, "attr" if isinstance(function, ast.Attribute) else "id", OPPOSITES[name])
        yield _copy(node, func=function)
    if name == "where" and len(node.args) == 3:
        yield _copy(node, args=[node.args[0], node.args[2], node.args[1]])


def _is_deed(node: ast.AST) -> bool:
    """A statement that is there for what it does: a call, or a value put into something that exists."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and _name(node.value.func) not in SILENT
    return isinstance(node, ast.Assign) and all(isinstance(one, (ast.Attribute, ast.Subscript)) for one in node.targets)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name(function: ast.AST) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _copy(node: ast.AST, **fields: object) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _put(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and any(one is old for one in value):
                value[next(place for place, one in enumerate(value) if one is old)] = new
                return


def _describe(statement: ast.AST, node: ast.AST, change: ast.AST) -> tuple[str, str]:
    """The statement around the change, before and after, the first line if it has more."""
    if statement is node:
        return _show(node), _show(change)
    place = next(place for place, one in enumerate(ast.walk(statement)) if one is node)
    twin = copy.deepcopy(statement)
    _put(twin, list(ast.walk(twin))[place], change)
    return _show(statement), _show(twin)


def _show(node: ast.AST) -> str:
    """Its first line; decorators and the body of a compound statement left out."""
    node = copy.copy(node)
    for name in ("body", "orelse", "finalbody", "handlers", "decorator_list"):
        if isinstance(getattr(node, name, None), list):
            setattr(node, name, [])
    return ast.unparse(node).splitlines()[0]
