"""The lock of a review: what a holder that was killed has left is removed, and nothing else."""

import os

from untwist.review import Lock


def test_what_a_killed_review_had_begun_to_write_is_removed(tmp_path):
    unfinished = tmp_path / ".d.csv.0123456789abcdef"
    others = [".d.csv.0123456789abcde", ".d.csv.bak", ".dxcsv.0123456789abcdef", ".e.csv.0123456789abcdef", "d.csv"]
    for name in (unfinished.name, *others):
        (tmp_path / name).write_text("half")
    (tmp_path / ".d.csv.fedcba9876543210").mkdir()
    os.symlink(tmp_path / "d.csv", tmp_path / ".d.csv.00000000000000ff")
    before = sorted(os.listdir(tmp_path))
    lock = Lock(tmp_path / "d.csv")
    lock.release()
    assert sorted(os.listdir(tmp_path)) == [name for name in before if name != unfinished.name]


def test_by_another_name_of_the_file_too(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/.d.csv.0123456789abcdef").write_text("half")
    os.symlink(tmp_path / "there/d.csv", tmp_path / "here.csv")
    Lock(tmp_path / "here.csv").release()
    assert os.listdir(tmp_path / "there") == []
