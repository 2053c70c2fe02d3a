"""Damaged models are refused at load, or do no harm anywhere: what one reader trusts no other reads differently."""

import struct
import subprocess
import sys

import numpy as np
import pytest

from helpers.model_bytes import put_together, sign, take_apart
from helpers.model_fixtures import FOLDER
from untwist.files import loads

pytest.importorskip("pandas", reason="the commands read tables with pandas")

from reliability.fuzz_damage import damage_model, use_damaged
from reliability.fuzz_models import USES, use_everywhere
from untwist import files


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.untwist")), ids=lambda path: path.stem)
def test_a_sound_model_is_used_everywhere(path):
    done = use_everywhere(files.load(path))
    assert {"predict", "describe", "save again and inspect", "explain", "to_code"} <= {*done} <= {*USES}


@pytest.mark.parametrize("part", range(10))
@pytest.mark.thinned(2)
def test_damaged_models_are_refused_or_harmless(part):
    used = [use_damaged(damage_model(seed)) for seed in range(30 * part, 30 * part + 30)]
    assert 0 < sum(one is None for one in used) < len(used)


def overwrite(content, name, at, value, ensemble=0):
    """Return a file with one number of its trees replaced."""
    header, data = take_apart(content)
    kind, size, offset = header["arrays"][header["ensembles"][ensemble][name]]
    values = np.frombuffer(data, kind, size, offset).copy()
    values[at] = value
    return put_together(header, data[:offset] + values.tobytes() + data[offset + values.nbytes :])


def find_split(content, name, value):
    """Return the first split where an array of the trees has this value, or another one where it is None."""
    header, data = take_apart(content)
    arrays = {
        one: np.frombuffer(data, *header["arrays"][number])
        for one, number in header["ensembles"][0].items()
        if one in ("feature", name)
    }
    found = arrays[name] != -1 if value is None else arrays[name] == value
    return int(np.flatnonzero((arrays["feature"] >= 0) & found)[0])


@pytest.fixture(scope="module")
def content():
    """A file of a model of numbers, and of a column of categories."""
    return (FOLDER / "format-300-negative.untwist").read_bytes()


def test_a_column_of_numbers_is_not_split_by_a_set(content):
    """Such a tree predicted; explain ended in an IndexError or took another path, to_xgboost ended in a KeyError."""
    hostile = overwrite(content, "set", find_split(content, "set", -1), 0)
    with pytest.raises(ValueError, match="columns of categories, and no others, are split by sets"):
        loads(hostile)


def test_a_column_of_categories_is_not_split_by_a_threshold(content):
    hostile = overwrite(content, "set", find_split(content, "set", None), -1)
    with pytest.raises(ValueError, match="columns of categories, and no others, are split by sets"):
        loads(hostile)


def test_missing_values_go_one_way_or_the_other(content):
    """ONNX took a 2 for a 0, and the core for a 1."""
    with pytest.raises(ValueError, match="missing_left is 0 or 1"):
        loads(overwrite(content, "missing_left", find_split(content, "set", -1), 2))


def test_the_link_is_that_of_alpha(content):
    """A link of an alpha of 1e308 gave posteriors of one half, and so an infinite alpha_star."""
    header, data = take_apart(content)
    header["link"]["alpha"] = 1e308
    with pytest.raises(ValueError, match="the link is that of alpha"):
        loads(put_together(header, data))


@pytest.mark.parametrize("n_jobs", [0, "all", True, 0.5])
def test_a_number_of_threads_is_one(content, n_jobs):
    header, data = take_apart(content)
    header["settings"]["n_jobs"] = n_jobs
    with pytest.raises(ValueError, match=r"model file.*n_jobs"):
        loads(put_together(header, data))


READ = """
import resource, sys
import numpy as np
import untwist
from untwist import files
from untwist.data import tables
content = sys.stdin.buffer.read()
np.linalg.inv(np.eye(2))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2):
    model = files.loads(content)
    try:
        model.predict(np.zeros((2, 4)))
    except ValueError as error:
        assert "8388608 features" in str(error), error
    else:
        raise AssertionError("a table of 4 columns was taken")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes there")
def test_a_small_file_that_claims_many_columns_takes_little_memory():
    """It took 275 MB to load such a file, and 900 MB to say that a table has fewer columns."""
    header, data = take_apart((FOLDER / "format-300-prior.untwist").read_bytes())
    header["columns"]["count"] = 2**23
    wide = put_together(header, data)
    wide = sign(struct.pack("<8sI", b"UNTWIST\0", 300) + wide[12:-32])
    assert len(wide) < 10_000
    done = subprocess.run([sys.executable, "-c", READ], input=wide, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) < 20_000


@pytest.mark.parametrize(("name", "model"), [("automatic", "PILBoostClassifier"), ("several", "UntwistClassifier")])
def test_what_was_chosen_is_that_of_an_untwist_classifier(name, model):
    header, data = take_apart((FOLDER / f"format-300-{name}.untwist").read_bytes())
    with pytest.raises(ValueError, match="an UntwistClassifier has chosen, and no other class has"):
        loads(put_together({**header, "model": model, "settings": {}}, data))
