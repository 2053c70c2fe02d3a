"""The same bits on another processor: the engine, cross-compiled for aarch64, run by qemu on this machine.

``make test-aarch64`` installs the cross compiler, qemu and debootstrap on Debian. Everything made here lies in
build/aarch64: a Debian of that architecture with its Python, the packages that the core needs, and the compiled core.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "aarch64"
SYSTEM = BUILD / "system"
PACKAGES = BUILD / "packages"
COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = ("qemu-aarch64", "-L", str(SYSTEM))
TOOLS = (COMPILER, EMULATOR[0], "debootstrap", "dpkg")

#: The release of Debian whose Python is that of this project, and that Python.
DEBIAN, PYTHON = "bookworm", "3.11"

#: What the core needs, with what that needs itself.
NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "narwhals", "cloudpickle")

#: The options of CMakeLists.txt.
OPTIONS = ["-std=c++17", "-O3", "-DNDEBUG", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-pthread"]

CHECKS = ("link", "engine", "forest", "randomised")

#: Runs on both processors: digests of what functions make of the same numbers, which tells whose bits differ.
DIGESTS = """
import hashlib, json, math
import numpy as np
from scipy.special import expit
from untwist import _core
z = np.arange(-400_000, 400_000) / 2.0**13
share = np.arange(1, 400_000) / 400_000
posterior = np.empty_like(z)
_core.clipped_posterior(z, 2.0, posterior)
found = {
    "exp of NumPy": np.exp(z),
    "log of NumPy": np.log(share),
    "exp of the C library": np.array([math.exp(one) for one in z[::40]]),
    "log of the C library": np.array([math.log(one) for one in share[::20]]),
    "expit of SciPy": expit(z),
    "the posterior of the core": posterior,
}
print(json.dumps({name: hashlib.sha256(values.tobytes()).hexdigest() for name, values in found.items()}))
"""

#: Runs on the other processor: every fit of the fixtures, compared with the numbers that releases keep. Probabilities
#: are made with exp and log of NumPy, whose last bits differ between processors. Tolerances are those of
#: tests/classifier/test_reproducibility.py: 1e-7, and 1e-5 where such functions enter the fit as well (BY_LIBM).
COMPARISON = """
import json, platform, sys
import numpy as np
from helpers.number_fixtures import BY_LIBM, CASES, PATH, describe, fit
known = json.loads(PATH.read_text())["cases"]
failed = 0
for name in CASES:
    found = describe(fit(name))
    different = [field for field in ("structure", "trees", "n_iter", "scores") if found[field] != known[name][field]]
    error = float(np.max(np.abs(np.divide(found["proba"], known[name]["proba"]) - 1.0)))
    words = "other " + ", ".join(different) if different else "the same bits"
    print(f"  {name}: {words}; probabilities within {error:.0e}", flush=True)
    failed += bool(different) or error > (1e-5 if name in BY_LIBM else 1e-7)
print(f"{len(CASES)} fits on {platform.machine()}, {failed} differ")
sys.exit(failed > 0)
"""


def run(*command: object, **options: object) -> None:
    """Run a command, and stop with its name if it fails."""
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def make_python_command() -> list[str]:
    """Return the command that starts the emulated Python, with the package and the tests on its path."""
    variables = [f"PYTHONPATH={PACKAGES}:{ROOT / 'tests'}", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"]
    settings = [word for variable in variables for word in ("-E", variable)]
    return [*EMULATOR, *settings, str(SYSTEM / f"usr/bin/python{PYTHON}")]


def compare_functions() -> None:
    """Print which functions give the same bits on both processors."""
    here, there = (
        json.loads(subprocess.run([*python, "-c", DIGESTS], check=True, capture_output=True, text=True).stdout)
        for python in ([sys.executable], make_python_command())
    )
    for name, digest in here.items():
        print(f"  {name}: {'the same bits' if there[name] == digest else 'other bits'}", flush=True)


def make_system() -> None:
    """Unpack a Debian of the other architecture with its Python; nothing of it is configured or started."""
    if (SYSTEM / f"usr/bin/python{PYTHON}").exists():
        return
    print("Unpacking Debian for aarch64")
    include = f"--include=python3,libpython{PYTHON}-dev,libstdc++6"
    run(
        "debootstrap",
        "--foreign",
        "--arch=arm64",
        "--variant=minbase",
        include,
        DEBIAN,
        SYSTEM,
        stdout=subprocess.DEVNULL,
    )
    for package in (SYSTEM / "var/cache/apt/archives").glob("*.deb"):
        run("dpkg", "-x", package, SYSTEM)


def unpack_packages() -> None:
    """Unpack the wheels of what the core needs, in the versions of this environment, and the sources of the package."""
    if not PACKAGES.exists():
        print("Fetching packages for aarch64")
        wheels = BUILD / "wheels"
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 24, 26, 27, 28)]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        names = [f"{name}=={version(name)}" if find_spec(name.replace("-learn", "")) else name for name in NEEDED]
        run(*pip, "--only-binary=:all:", f"--python-version={PYTHON}", *platforms, "--platform=manylinux2014_aarch64",
            "--dest", wheels, *names)  # fmt: skip
        for wheel in wheels.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(PACKAGES)
    shutil.rmtree(PACKAGES / "untwist", ignore_errors=True)
    shutil.copytree(ROOT / "src/untwist", PACKAGES / "untwist")


def compile_core() -> None:
    """Cross-compile the module."""
    print("Compiling the core for aarch64")
    source = BUILD / "nanobind"
    if not source.exists():
        run(
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--target",
            source,
            "nanobind",
        )
    nanobind = source / "nanobind"
    headers = [
        f"-I{folder}"
        for folder in (
            SYSTEM / f"usr/include/python{PYTHON}",
            SYSTEM / "usr/include",
            nanobind / "include",
            nanobind / "ext/robin_map/include",
        )
    ]
    module = PACKAGES / f"untwist/_core.cpython-{PYTHON.replace('.', '')}-aarch64-linux-gnu.so"
    run(COMPILER, *OPTIONS, "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing", *headers,
        nanobind / "src/nb_combined.cpp", *(ROOT / "cpp").rglob("*.cpp"), "-o", module)  # fmt: skip


def main() -> None:
    """Run the engine's own checks and the fits of the fixtures on the other processor."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"missing {', '.join(missing)}: as root on Debian, make test-aarch64 installs them")
    if sysconfig.get_platform() == "linux-aarch64":
        raise SystemExit("this machine is of that architecture: make test")
    BUILD.mkdir(parents=True, exist_ok=True)
    make_system()
    unpack_packages()
    compile_core()
    for check in CHECKS:
        program = BUILD / f"{check}-check"
        run(COMPILER, *OPTIONS, "-static", "-o", program, ROOT / f"tests/cpp/{check}_check.cpp")
        run(*EMULATOR, program)
    compare_functions()
    run(*make_python_command(), "-c", COMPARISON)


if __name__ == "__main__":
    main()
