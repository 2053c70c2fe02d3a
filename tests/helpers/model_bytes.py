"""Model files taken apart and put together again, by nothing but the description in docs/model-file.md."""

import hashlib
import json
import struct


def sign(content):
    """The content with its checksum at the end."""
    return content + hashlib.sha256(content).digest()


def take_apart(content):
    """The header and the bytes of the arrays."""
    magic, version, zero, size = struct.unpack_from("<8sIIQ", content)
    assert (magic, zero) == (b"UNTWIST\0", 0)
    assert version == 300
    return json.loads(content[24 : 24 + size]), content[24 + size : -32]


def put_together(header, data):
    """A file with this header and these bytes, and a right checksum."""
    text = json.dumps(header).encode()
    text += b" " * (-(24 + len(text)) % 8)
    return sign(struct.pack("<8sIIQ", b"UNTWIST\0", 300, 0, len(text)) + text + data)
