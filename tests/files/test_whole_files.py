"""Files that are there whole or not at all."""

import os
import stat

import pytest

from untwist.files.whole_files import open_whole, write_whole


def test_the_old_content_stays_until_all_of_the_new_is_on_disk(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    synced = []
    usual = os.fsync

    def watch(handle):
        found = os.fstat(handle)
        is_folder = stat.S_ISDIR(found.st_mode)
        synced.append(("folder" if is_folder else found.st_size, path.read_bytes()))
        usual(handle)

    monkeypatch.setattr(os, "fsync", watch)
    with open_whole(path) as file:
        file.write(b"newer")
        assert path.read_bytes() == b"old"
        (temporary,) = {one.name for one in tmp_path.iterdir()} - {"file"}
        assert temporary.startswith(".file.")
    # The bytes are on disk before the file takes its name, and the name afterwards.
    assert synced == [(5, b"old"), ("folder", b"newer")]
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_goes_wrong_leaves_nothing_behind(tmp_path, error):
    def fail():
        with open_whole(tmp_path / "file") as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="looks into /proc")
def test_no_handle_stays_open(tmp_path):
    before = os.listdir("/proc/self/fd")
    write_whole(tmp_path / "file", b"x")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_file_is_as_private_as_it_was_from_its_first_byte_on(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chmod(path, 0o640)
    with open_whole(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o640
        file.write(b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


def test_a_pipe_is_written_to_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_that_cannot_be_synced_does_no_harm(tmp_path, monkeypatch):
    usual = os.open

    def refuse(path, flags, *mode, **more):
        if os.path.isdir(path):
            raise OSError("not here")
        return usual(path, flags, *mode, **more)

    monkeypatch.setattr(os, "open", refuse)
    write_whole(tmp_path / "file", b"x")
    assert (tmp_path / "file").read_bytes() == b"x"
