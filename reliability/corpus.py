"""The inputs that the fuzzer kept: one archive per target, tests/corpus/TARGET.zip.

    python -m reliability.corpus add csv long-cell              # keep a case that was found, for good
    python -m reliability.corpus unpack build/corpus forest    # as files, in build/corpus/forest
    python -m reliability.corpus pack build/corpus forest      # the archive anew from these files
    python -m reliability.corpus list                          # how many there are, and how large

The same inputs make the same bytes of an archive: sorted, uncompressed and without times.
"""

from __future__ import annotations

import argparse
import shutil
import zipfile
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
FOUND = "found-"  # The name of an input that was once a bug begins so; such an input is never dropped.

__all__ = ["CORPUS", "FOUND", "add_inputs", "list_targets", "pack", "read_inputs", "unpack", "write_inputs"]


def list_targets() -> list[str]:
    """The targets that have an archive."""
    return sorted(path.stem for path in CORPUS.glob("*.zip"))


def read_inputs(target: str) -> dict[str, bytes]:
    """The kept inputs of a target by their names."""
    with zipfile.ZipFile(CORPUS / f"{target}.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_inputs(target: str, inputs: dict[str, bytes]) -> None:
    """Make these the inputs of a target, in place of those it had."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(CORPUS / f"{target}.zip", "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(inputs.items()):
            entry = zipfile.ZipInfo(name)  # It is dated 1980 unless told otherwise.
            entry.create_system = 3
            archive.writestr(entry, content)


def add_inputs(target: str, files: list[Path]) -> list[str]:
    """Keep cases that were found, each under the name of its file; returns the names."""
    inputs = read_inputs(target) if target in list_targets() else {}
    added = {FOUND + file.name.removeprefix(FOUND): file.read_bytes() for file in files}
    write_inputs(target, inputs | added)
    return list(added)


def unpack(folder: Path, targets: list[str]) -> None:
    """Write the inputs as files FOLDER/TARGET/NAME; what was in FOLDER/TARGET before is removed."""
    for target in targets:
        place = folder / target
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name, content in read_inputs(target).items():
            (place / Path(name).name).write_bytes(content)


def pack(folder: Path, targets: list[str]) -> None:
    """Make the archives of targets from the files FOLDER/TARGET/NAME."""
    for target in targets:
        write_inputs(target, {file.name: file.read_bytes() for file in (folder / target).iterdir()})


def main(arguments: list[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m reliability.corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="show the targets and how much is kept of each")
    adding = commands.add_parser("add", help="keep cases that were found")
    adding.add_argument("target")
    adding.add_argument("files", nargs="+", type=Path)
    for name, words in (("unpack", "write the inputs as files"), ("pack", "make archives from files")):
        command = commands.add_parser(name, help=words)
        command.add_argument("folder", type=Path)
        command.add_argument("targets", nargs="*", help="default: all")
    options = parser.parse_args(arguments)
    if options.command == "list":
        for target in list_targets():
            inputs = read_inputs(target)
            print(f"{target:8} {len(inputs):>4} inputs, {sum(map(len, inputs.values())):>8,} bytes")
    elif options.command == "add":
        print(*add_inputs(options.target, options.files), sep="\n")
    elif options.command == "unpack":
        unpack(options.folder, options.targets or list_targets())
    else:
        pack(options.folder, options.targets or sorted(path.name for path in options.folder.iterdir()))


if __name__ == "__main__":
    main()
