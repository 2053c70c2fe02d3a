"""Model files: a header in JSON, arrays as they are, a checksum. Reading one executes nothing."""

from untwist.files.format import (
    VERSION,
    dumps,
    header,
    load,
    loads,
    save,
    whole_file,
    write_whole,
)

__all__ = ["VERSION", "dumps", "header", "load", "loads", "save", "whole_file", "write_whole"]
