"""Text files as bytes, compressed or not."""

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from contextlib import ExitStack, contextmanager

# called with the number of bytes of a text that have been read since it was opened
_watchers: list[Callable[[int], object]] = []
COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}      # by the first bytes of a file
DAMAGED = EOFError, OSError, lzma.LZMAError, zlib.error      # bz2 raises an OSError without an errno


@contextmanager
def opened_text(path):
    """An open binary file of the text at ``path``, decompressed (gzip, bzip2, xz) and without its byte order mark.

    Pipes can be read, too. Damage in a compressed file raises ValueError while the text is read.
    """
    with ExitStack() as at_end:
        file = at_end.enter_context(io.BufferedReader(_WatchedFile(path)) if _watchers else open(path, "rb"))
        for begins, unpacked in COMPRESSED.items():
            if file.peek(len(begins)).startswith(begins):
                file = at_end.enter_context(unpacked(file))
                break
        try:
            if file.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
            yield file
        except DAMAGED as error:
            if getattr(error, "errno", None) is not None:
                raise
            raise ValueError(f"{str(path)!r} is compressed, and damaged: {error}") from None


@contextmanager
def watched(report):
    """A context in which ``report(n_bytes)`` is called while texts are read, with bytes before decompression.
    """
    _watchers.append(report)
    try:
        yield
    finally:
        _watchers.remove(report)


class _WatchedFile(io.FileIO):
    n_bytes = 0

    def readinto(self, buffer):
        n = super().readinto(buffer)
        self.n_bytes += n or 0
        for report in _watchers:
            report(self.n_bytes)
        return n

    def readall(self):
        parts, buffer = [], bytearray(1 << 20)
        while n := self.readinto(buffer):
            parts.append(bytes(buffer[:n]))
        return b"".join(parts)
