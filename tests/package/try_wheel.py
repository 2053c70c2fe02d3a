"""Build the wheel, install it with the core dependencies only, and use it outside the repository."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRIAL = """
import sys, numpy as np, untwist
from sklearn.datasets import load_breast_cancer
assert not {"xgboost", "pandas", "mpmath"} & set(sys.modules)
X, y = load_breast_cancer(return_X_y=True)
_, noisy, _ = __import__("untwist.twisters").twisters.ClassNoise(0.3).twist(X, y, np.random.default_rng(0))
model = untwist.PILBoostClassifier(alpha=4.0, n_estimators=100, max_depth=1, random_state=0).fit(X, noisy)
accuracy = model.score(X, y)
assert accuracy > 0.9, accuracy
default = untwist.UntwistClassifier(random_state=0).fit(X, noisy)
assert default.score(X, y) > 0.85, default.score(X, y)
audit = __import__("untwist.audit").audit.audit_labels(X, noisy, default)
first = audit.suspects(budget=50)
assert np.mean(noisy[first] != y[first]) > 0.8
print(audit, audit.explain(first[0]), sep="\\n", file=sys.stderr)
page = __import__("untwist.report").report.report(audit, title="cancer")
assert page.endswith("</html>\\n") and len(page) < 500_000
try:
    audit.to_frame()
    raise SystemExit("pandas is not meant to be here")
except ImportError as error:
    assert "untwist[cli]" in str(error), error
from untwist.export import to_code, to_onnx
names = {}
exec(to_code(model, "python"), names)
assert np.allclose([names["predict_proba"](row) for row in X[:20].tolist()], model.predict_proba(X[:20]))
__import__("untwist.explain").explain.explain(model, X[:20])
try:
    to_onnx(model)
    raise SystemExit("onnx is not meant to be here")
except ImportError as error:
    assert "untwist[export]" in str(error), error
print(untwist.__file__)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)

        def run(*command: object) -> str:
            return subprocess.run(
                [str(part) for part in command], cwd=there, check=True, capture_output=True, text=True
            ).stdout

        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", there, ROOT)
        (wheel,) = there.glob("untwist-*.whl")
        run(sys.executable, "-m", "venv", there / "bare")
        python = there / "bare/bin/python"
        run(python, "-m", "pip", "install", "--quiet", wheel)
        installed = run(python, "-c", TRIAL).strip()
        assert installed.startswith(str(there)), installed
        listing = run(python, "-m", "zipfile", "--list", wheel)
        assert "py.typed" in listing
        assert "tests/" not in listing
        assert "cpp/" not in listing
        print(f"{wheel.name}: {wheel.stat().st_size / 1024:.0f} kB, works with the core dependencies only")


if __name__ == "__main__":
    main()
