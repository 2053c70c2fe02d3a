"""The package as a whole: its public names, the direction of its imports, and that what is optional is optional."""

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

import untwist

PACKAGE = Path(untwist.__file__).parent
ROOT = Path(__file__).parents[2]

#: The public names of the public modules: what README and docs show, and what users may import.
PUBLIC = {
    "untwist": ["Growth", "PILBoostClassifier", "UntwistClassifier", "__version__", "load", "save"],
    "untwist.audit": [
        "AuditContext",
        "AuditedSources",
        "AuditedTable",
        "Confusion",
        "DataIssue",
        "Decisions",
        "Disagreement",
        "Example",
        "Explanation",
        "HiddenSource",
        "Judge",
        "JudgedItem",
        "LabelAudit",
        "Notice",
        "NoticeKind",
        "Reason",
        "ReviewOutcome",
        "Slice",
        "SourceQuality",
        "State",
        "Statement",
        "Verdict",
        "audit_labels",
        "explain_rows",
        "find_data_issues",
        "read_decisions",
        "write_decisions",
    ],
    "untwist.batches": ["Batches", "Encoded"],
    "untwist.certificate": ["Certificate", "StepCondition", "SurrogateCertificate", "certify", "step_condition"],
    "untwist.checkpoints": ["Checkpoint", "resumed"],
    "untwist.distributed.local": ["fit", "shards"],
    "untwist.distributed.ray": ["fit", "predict"],
    "untwist.distributed.shard": ["end_tracker", "fit_shard", "make_worker_model", "start_tracker"],
    "untwist.distributed.spark": ["fit", "predict"],
    "untwist.explain": ["Contributions", "explain", "shap_values", "tree_explainer"],
    "untwist.explorer": ["ALPHA", "FOCAL", "SUPER", "Exploration", "LossFamily", "explore"],
    "untwist.export": ["numbers", "probabilities", "to_code", "to_onnx", "to_treelite", "to_xgboost"],
    "untwist.files": ["VERSION", "dumps", "header", "load", "loads", "save"],
    "untwist.links": ["CanonicalLink", "ClippedLink", "HalfLogitLink", "Link", "LogitLink", "default_step_size"],
    "untwist.losses": [
        "AlphaLoss",
        "ExponentialLoss",
        "FocalLoss",
        "LogLoss",
        "Loss",
        "MatusitaLoss",
        "SquareLoss",
        "SuperLoss",
        "tilt",
        "tilted_logit",
    ],
    "untwist.noise": [
        "MenonEstimate",
        "NoiseModel",
        "menon",
        "original_learned",
        "taylor",
    ],
    "untwist.objectives": [
        "CatBoostMetric",
        "CatBoostObjective",
        "LightGBMMetric",
        "LightGBMObjective",
        "XGBoostMetric",
        "XGBoostObjective",
        "clean_proba",
        "gradient",
        "hessian",
        "loss",
        "safe_hessian",
        "torch_loss",
        "twisted_log_loss",
        "twisted_proba",
    ],
    "untwist.plot": [
        "plot_calibration",
        "plot_importances",
        "plot_learning_curves",
        "plot_noise_posterior",
        "plot_review_yield",
        "plot_transition_matrix",
    ],
    "untwist.properties": [
        "PropertyCheck",
        "differentiable",
        "extremes",
        "monotone",
        "proper",
        "properties",
        "strictly_proper",
        "symmetric",
        "well_formed",
    ],
    "untwist.report": ["Peer", "compare", "report"],
    "untwist.twisters": [
        "BernoulliNoise",
        "ClassConditionalNoise",
        "ClassNoise",
        "FeatureNoise",
        "Insider",
        "InstanceNoise",
        "OneBadClass",
        "PairFlips",
        "RandomTransitions",
        "SourceNoise",
        "TransitionNoise",
    ],
    "untwist.twists": [
        "ClassConditionalTwist",
        "ConstructiveAlpha",
        "SymmetricNoise",
        "alpha_star",
        "best_fixed_alpha",
        "binary_entropy",
        "constructive_alpha",
        "cross_entropy",
        "cross_entropy_gain",
        "cross_entropy_slope",
        "entropy",
        "is_bayes_blunting",
        "kl_divergence",
    ],
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_these_and_exist(module):
    namespace = importlib.import_module(module)
    assert namespace.__all__ == PUBLIC[module]
    assert all(hasattr(namespace, name) for name in namespace.__all__)


def test_all_that_a_module_says_it_has_is_there():
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        names = getattr(module, "__all__", [])
        assert sorted(set(names)) == sorted(names), module
        assert [name for name in names if not hasattr(module, name)] == [], module


def test_dir_lists_what_is_imported_only_when_asked_for():
    code = "import untwist; print(*dir(untwist))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"Growth", "PILBoostClassifier", "UntwistClassifier", "audit", "load", "losses", "report", "save"} <= set(
        output.stdout.split()
    )
    assert all(getattr(untwist, name) is not None for name in dir(untwist) if not name.startswith("_"))


def test_importing_the_package_loads_nothing_optional():
    programs = ["experiments.demo", "untwist.commands.main", "experiments.arena.program", "experiments.paper.program"]
    modules = [
        "untwist",
        "untwist.distributed.local",
        "untwist.distributed.dask",
        "untwist.distributed.ray",
        "untwist.distributed.spark",
        "untwist.explain",
        "untwist.export",
        "untwist.objectives",
        "untwist.plot",
        "untwist.report",
        *programs,
    ]
    optional = {
        "cupy",
        "dask",
        "distributed",
        "pyspark",
        "ray",
        "xgboost",
        "lightgbm",
        "catboost",
        "torch",
        "cleanlab",
        "mpmath",
        "matplotlib",
        "onnx",
        "shap",
        "treelite",
    }
    code = f"import sys, {', '.join(modules)}; print(sorted({optional} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_versions_agree():
    assert untwist.__version__ == importlib.metadata.version("untwist")
    assert f"## {untwist.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {untwist.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert (PACKAGE / "py.typed").exists()


def test_the_notation_page_names_code_and_tests_that_exist():
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    rows = [line for line in (ROOT / "docs/notation.md").read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 40
    for row in rows:
        *_, code, file, test = (cell.strip() for cell in row.strip("|").split(" | "))
        for name in re.findall(r"`([^`]+)`", code):
            *owners, member = re.match(r"[\w.]+", name)[0].split(".")
            text = (ROOT / file.strip("`")).read_text()
            assert all(re.search(rf"\b{part}\b", text) for part in (*owners, member)), row
        for name in re.findall(r"`([^`]+)`", test):
            assert f"def {name}(" in tests, row


def test_no_test_module_imports_another():
    for file in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[-1].startswith("test_")], file


def test_contributing_is_short():
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 50


def test_what_a_module_lacks_is_not_taken_for_the_module(monkeypatch):
    def fail(name):
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")

    monkeypatch.setattr(untwist, "import_module", fail)
    monkeypatch.delitem(vars(untwist), "audit", raising=False)
    with pytest.raises(ModuleNotFoundError, match="scipy"):
        untwist.audit  # noqa: B018


def test_what_is_no_module_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'some_module'"):
        untwist.some_module  # noqa: B018
