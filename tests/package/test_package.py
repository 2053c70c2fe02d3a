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

#: Layers from the bottom up: a module imports from earlier lines only.
LAYERS = [
    {"arguments", "collective", "_core", "commands.words"},
    {"numerics"},
    {"losses"},
    {"properties", "objectives"},
    {"links", "twists"},
    {"explorer", "twisters", "boosting", "trees", "tables", "folds", "labels", "noise"},
    {"batches", "certificate", "training", "xgb.forests", "xgb.weights"},
    {"automatic", "xgb.engine"},
    {"classifier"},
    {"files"},
    {"checkpoints", "export.scoring"},
    {"distributed.shard"},
    {"distributed.dask", "distributed.local", "distributed.worker"},
    {"explain", "export.code", "export.onnx", "export.treelite", "export.xgboost"},
    {"commands.sheets"},
    {"commands.columns"},
    {"commands.blocks"},
    {
        "audit",
        "commands.common",
        "demo",
        "experiments.datasets",
        "experiments.methods",
        "experiments.results",
        "experiments.speed",
    },
    {"experiments.figures", "experiments.sections", "report.markup", "report.peers"},
    {"report.charts"},
    {"report.findings"},
    {"report.review", "report.sections"},
    {"report.page"},
    {"commands.train", "commands.predict", "commands.audit"},
    {"commands.explain", "commands.inspect", "commands.doctor"},
    {"experiments.theory", "experiments.protocol", "experiments.verdict", "experiments.runner"},
    {"experiments.algorithms", "experiments.page"},
    {"experiments.trials"},
    {"experiments.paper"},
    {"experiments.comparison"},
    {"experiments.findings"},
    {"experiments.claims"},
    {"experiments.arena", "experiments.reproduce"},
    {"cli"},
]

PUBLIC = {
    "untwist": ["PILBoostClassifier", "__version__", "load", "save"],
    "untwist.audit": ["Explanation", "LabelAudit", "Reason", "Slice", "audit_labels"],
    "untwist.noise": [
        "MenonEstimate",
        "NoiseEstimate",
        "Untwisting",
        "estimate_noise",
        "menon",
        "original_learned",
        "taylor",
    ],
    "untwist.batches": ["Batches", "Encoded"],
    "untwist.checkpoints": ["Checkpoint", "resumed"],
    "untwist.data.workers": ["Workers", "find_workers", "solo"],
    "untwist.distributed.local": ["fit", "shards"],
    "untwist.distributed.shard": ["dismiss", "fit_shard", "tracker", "worker_model"],
    "untwist.boosting.engines.xgboost.booster": ["Booster", "Dataset"],
    "untwist.boosting.engines.xgboost.trees": ["GrownTree", "forest_arrays", "grown_trees", "last_below"],
    "untwist.boosting.engines.xgboost.weights": ["Weigher", "arrays_of"],
    "untwist.boosting.algorithm": [
        "Hypothesis",
        "Round",
        "ValidationLoss",
        "WeakLearner",
        "adaboost",
        "boost",
        "pilboost",
        "staged_scores",
    ],
    "untwist.certificate": ["Certificate", "StepCondition", "SurrogateCertificate", "certify", "step_condition"],
    "untwist.explain": ["Contributions", "explain", "shap_values", "tree_explainer"],
    "untwist.export": ["numbers", "probabilities", "to_code", "to_onnx", "to_treelite", "to_xgboost"],
    "untwist.export.scoring": ["Scoring", "Term", "Writer", "numbers", "probabilities"],
    "untwist.explorer": ["ALPHA", "FOCAL", "SUPER", "Exploration", "LossFamily", "explore"],
    "untwist.links": ["CanonicalLink", "ClippedLink", "HalfLogitLink", "Link", "default_step_size"],
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
    "untwist.automatic.search": [
        "ALPHAS",
        "DEPTHS",
        "N_FOLDS",
        "STEPS",
        "Candidate",
        "Choice",
        "Chosen",
        "Folds",
        "Unseen",
        "choose",
        "judged",
    ],
    "untwist.files": ["VERSION", "dumps", "header", "load", "loads", "open_whole", "save", "write_whole"],
    "untwist.data.folds": ["draw_folds", "draw_share", "hold_out_share", "mix_bits", "split_into_folds"],
    "untwist.data.labels": ["find_classes", "refuse_missing", "weigh_classes"],
    "untwist.report": ["Peer", "compare", "report"],
    "untwist.report.charts": [
        "Frame",
        "Point",
        "draw_calibration",
        "draw_curve",
        "draw_finds",
        "draw_intervals",
        "draw_pairs",
        "draw_waffle",
        "find_ticks",
        "format_share",
        "write_svg",
    ],
    "untwist.report.findings": [
        "clean_curve",
        "effective",
        "expected_finds",
        "importances",
        "learning_curve",
        "reliability",
        "spread",
        "wilson",
    ],
    "untwist.report.markup": [
        "Interval",
        "Section",
        "describe_value",
        "format_interval",
        "format_percent",
        "format_probability",
        "name_column",
        "place_beside",
        "write_figure",
        "write_page",
        "write_table",
    ],
    "untwist.report.page": ["report"],
    "untwist.report.peers": ["Peer", "compare"],
    "untwist.report.review": ["write_review"],
    "untwist.report.sections": [
        "write_calibration",
        "write_columns",
        "write_noise",
        "write_peers",
        "write_summary",
        "write_training",
    ],
    "untwist.audit.peers": ["LEARNING_RATE", "PATIENCE", "ROUNDS", "HeldOut", "fit_lightgbm", "fit_xgboost"],
    "untwist.progress": ["ProgressLine", "estimate"],
    "untwist.text": [
        "UNSEEN",
        "clip",
        "for_json",
        "for_page",
        "for_script",
        "for_spreadsheet",
        "for_terminal",
    ],
    "untwist.data.tables": [
        "Category",
        "Schema",
        "bring_to_host",
        "checksum_columns",
        "fingerprint",
        "learn",
        "learn_parts",
        "round_weights",
    ],
    "untwist.boosting.runs": ["CompiledRun", "Ensemble", "Progress", "ReferenceRun", "Run", "advance"],
    "untwist.boosting.forest": [
        "Forest",
        "Growth",
        "Tree",
        "booster",
        "dataset",
        "grown",
        "own_weights",
        "row_blocks",
        "shared_bins",
        "threads",
    ],
    "untwist.twisters": ["BernoulliNoise", "ClassConditionalNoise", "ClassNoise", "FeatureNoise", "Insider"],
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


def test_imports_go_down_only():
    height = {name: level for level, names in enumerate(LAYERS) for name in names}
    files = {
        ".".join(file.relative_to(PACKAGE).with_suffix("").parts): file
        for file in PACKAGE.rglob("*.py")
        if file.stem != "__init__"
    }
    assert set(files) | {"_core"} == set(height)
    for module, file in files.items():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "untwist":
                source = node.module.removeprefix("untwist").removeprefix(".")
                inside = [f"{source}.{alias.name}".removeprefix(".") for alias in node.names]
                for name in [source] if source in height else inside:
                    assert height[name] < height[module], f"{module} imports {name}"


def test_importing_the_package_loads_nothing_optional():
    programs = ["experiments.demo", "untwist.commands.main", "experiments.arena.program", "experiments.paper.program"]
    modules = [
        "untwist",
        "untwist.distributed.local",
        "untwist.distributed.dask",
        "untwist.explain",
        "untwist.export",
        "untwist.objectives",
        "untwist.report",
        *programs,
    ]
    optional = {
        "cupy",
        "dask",
        "distributed",
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
    def broken(name):
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")

    monkeypatch.setattr(untwist, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="scipy"):
        untwist.some_module  # noqa: B018
