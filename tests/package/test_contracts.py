"""The contracts of the house: imports go downwards, rooms keep to themselves, nobody touches another's privates."""

import ast
import re
from pathlib import Path

import pytest

import untwist

PACKAGE = Path(untwist.__file__).parent
ROOT = Path(__file__).parents[2]

#: Rooms from the bottom up. A module imports from its own room and from lower layers; rooms of a layer do not meet.
LAYERS = [
    ["arguments", "blas", "text", "optional", "_core"],
    ["progress", "display", "sums", "class_order"],
    ["theory"],
    ["data", "objectives", "twisters"],
    ["out_of_fold"],
    ["noise"],
    ["boosting", "crossing"],
    ["label_model"],
    ["model", "learning_noise"],
    ["growth"],
    ["column_rules"],
    ["settings"],
    ["fit_arguments"],
    ["training_table"],
    ["training_data"],
    ["fitting", "near_duplicates"],
    ["automatic"],
    ["any_model"],
    ["predicting"],
    ["classifier", "pilboost"],
    ["files", "export"],
    ["explain", "audit", "distributed"],
    ["report", "review", "plot"],
    ["commands"],
]

#: Public names of modules that live in a room. Nothing inside the package imports through them.
DOORS = {"batches", "certificate", "checkpoints", "explorer", "links", "losses", "properties", "twists"}

#: What the theory may import besides itself.
OF_THE_THEORY = {"numpy", "scipy", "untwist.arguments", "untwist._core", "untwist.theory"}

#: The compiled core, and what the standard library has with an underscore and yet documents.
ALLOWED = {"_core", "_exit", "_replace"}

#: What notebooks ask an object for, and scikit-learn an estimator.
DISPLAY = {"_repr_html_", "_repr_html_inner", "_repr_mimebundle_"}

#: Private names of the classifier, of a fitted model and of engines are looked for in all of these.
READERS = ["src/untwist", "experiments", "reliability", "tests"]


def list_modules():
    """Yield (name below untwist, file) of every module of the package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def list_imports(file):
    """Yield the full name of every module that a file imports, at its top or within a function."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "untwist":
            yield from (f"untwist.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def find_room(name):
    return name.removeprefix("untwist").removeprefix(".").split(".")[0]


def test_every_module_has_a_room():
    rooms = {find_room(name) for name, _ in list_modules()} - {""}
    assert rooms | {"_core"} == DOORS.union(*LAYERS)


def test_imports_go_downwards():
    height = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
    wrong = []
    for name, file in list_modules():
        room = find_room(name)
        if room in DOORS or not room:
            continue
        for imported in list_imports(file):
            target = find_room(imported)
            if imported.split(".")[0] != "untwist" or target in ("", room):
                continue
            if target in DOORS or height.get(target, len(LAYERS)) >= height[room]:
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


def test_the_theory_stands_on_numpy_and_scipy_alone():
    standard = {"__future__", "abc", "collections", "dataclasses", "functools", "itertools", "math", "typing"}
    for name, file in list_modules():
        if find_room(name) != "theory":
            continue
        for imported in list_imports(file):
            allowed = imported.split(".")[0] in standard or any(
                imported == one or imported.startswith(f"{one}.") for one in OF_THE_THEORY
            )
            assert allowed, f"{name} imports {imported}"


def test_a_report_fits_nothing():
    for name, file in list_modules():
        if find_room(name) == "report":
            text = file.read_text()
            assert not re.search(r"\.fit\(|Search\(|TrainingData|sklearn|xgboost\b.*import|lightgbm\b.*import", text), (
                name
            )


@pytest.mark.parametrize("door", sorted(DOORS))
def test_a_door_leads_to_one_module_and_holds_nothing(door):
    body = ast.parse((PACKAGE / f"{door}.py").read_text()).body
    kept = [node for node in body if not isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom))]
    assert [node.name for node in kept] in ([], ["__getattr__"])  # That one knows names of earlier versions.
    modules = {node.module for node in body if isinstance(node, ast.ImportFrom)}
    assert len({module for module in modules if module.startswith("untwist")}) == 1


def list_private_names(*places):
    """Return the names with one leading underscore that classes of these modules define or set on themselves."""
    names = set()
    for place in places:
        path = PACKAGE / place
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    names |= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                    names |= {
                        one.attr
                        for one in ast.walk(node)
                        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self"
                    }
    return {name for name in names if name.startswith("_") and not name.startswith("__")} - {"_core"} - DISPLAY


def test_nobody_touches_a_private_name_of_the_classifier_of_a_model_or_of_an_engine():
    seams = [
        "classifier.py",
        "pilboost.py",
        "predicting.py",
        "model.py",
        "settings.py",
        "training_data.py",
        "training_table.py",
        "boosting",
        "automatic",
        "data/encoding.py",
    ]
    private = list_private_names(*seams)
    assert {"_encode", "_decide", "_boost_once"} <= private  # So that the test cannot pass by finding none.
    any_private = re.compile(rf"\.({'|'.join(private)})\b")
    touched = []
    for place in READERS:
        files = sorted((ROOT / place).rglob("*.py"))
        assert files, place
        for file in files:
            text = file.read_text()
            if not any_private.search(text):  # Reading words is quicker than parsing.
                continue
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, ast.Attribute) or node.attr not in private:
                    continue
                if not is_self(node.value):
                    touched.append(f"{file.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}")
    assert touched == []


def test_no_module_of_the_package_touches_private_names_of_another():
    touched = []
    for name, file in list_modules():
        tree = ast.parse(file.read_text())
        own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        own |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_self(node.value)}
        own |= {node.target.id for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and is_name(node.target)}
        for node in ast.walk(tree):
            private = isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr) and node.attr not in ALLOWED
            if private and not is_self(node.value) and node.attr not in own:
                touched.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert touched == []


def is_name(node):
    return isinstance(node, ast.Name)


def is_self(node):
    return is_name(node) and node.id in ("self", "cls")


def test_nobody_copies_the_attributes_of_a_classifier_as_a_whole():
    for name, file in list_modules():
        if name != "classifier":
            assert "__dict__.update" not in file.read_text(), name
