"""A fit's state in a file, from which a later process goes on: when it is written, how, and what is taken back.

A file is replaced by the next as a whole, or not at all: it is written beside the old one, brought to the disk, and
given its name. Identity and state are pickles; a sum over all bytes stands at the end.
"""

import errno
import os
import pickle
import struct
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

OF_ANY_FORMAT = b"cmargin checkpoint, format "
FORMAT = 19                      # another number wherever what is kept changes
MAGIC = OF_ANY_FORMAT + b"%d\n" % FORMAT
TRAILER = struct.Struct("<QI")   # bytes before it, and their CRC-32
PIECE = 1 << 24                  # bytes that are summed at a time
LEISURE = 20.0                   # times as long as writing took, training goes on at least before the next
OF_MAX_TIME = 0.1                # part of a time limit that training goes on at most
# what arrays and their scalars are made of; all else that a checkpoint holds are our own classes
MAKERS = {"ndarray", "dtype", "_reconstruct", "_frombuffer", "scalar"}


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit keeps its state, and how often: what an estimator's ``checkpoint`` takes beside a path.

    Parameters
    ----------
    path : str or path
        Also a file of this name with ``.part`` behind it, while it is written; with ``comm=``, where rank 0's path
        counts, files of every rank R with ``.rankR.0`` and ``.rankR.1``.
    seconds : float >= 0 or None, default=30.0
        Of training between two checkpoints, at least; more where writing takes more than a twentieth of the time, no
        more than a tenth of ``max_time``. None: only ``passes`` count.
    passes : float > 0 or None, default=None
        Reads of the data, as ``n_passes_`` counts them, after which one is due too.

    Notes
    -----
    A state is written where it is whole: after a pass, or after an evaluation over all rows. Seconds in ``history_`` go
    on from those of the process before; ``max_time`` is that of one call. A file that cannot be written, on a full disk
    say, costs one warning: the last one stays, training goes on, and the next is tried in its turn.

    Every fit needs a file of its own: clones that a search trains side by side would take each other's. A checkpoint is
    a pickle, of which only arrays and classes of this package are loaded; trust it as you would any pickle even so.

    Examples
    --------
    >>> from cmargin import Checkpoint, SmSVMClassifier
    >>> SmSVMClassifier(checkpoint=Checkpoint("fit.checkpoint", seconds=300.0)).checkpoint.seconds
    300.0
    """

    path: str | os.PathLike
    seconds: float | None = 30.0
    passes: float | None = None

    def __post_init__(self):
        if not isinstance(os.fspath(self.path), str) or not os.fspath(self.path):
            raise ValueError(f"Checkpoint: path must be a str or a path of one, and not empty, got {self.path!r}.")
        for name, least in (("seconds", 0.0), ("passes", 1e-300)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"Checkpoint: {name} must be {'at least 0' if name == 'seconds' else 'above 0'} or "
                                 f"None, got {value!r}.")
        if self.seconds is None and self.passes is None:
            raise ValueError("Checkpoint: seconds and passes cannot both be None.")


class Checkpointer:
    """The checkpoint of one fit, of which nothing is ever due where ``checkpoint`` is None.

    ``identity``: what must be the same for a fit to go on, strings by names for the user; ``found``: the state that an
    earlier process left, or None.
    """

    def __init__(self, checkpoint=None, identity=None, max_time=None):
        self.found, self.path, self.ended, self.warned = None, None, False, False
        if checkpoint is None:
            return
        self.path, self.passes, self.identity = os.fspath(checkpoint.path), checkpoint.passes, identity
        if os.path.islink(self.path):                        # the file it leads to is replaced, and removed at the end
            self.path = os.path.realpath(self.path)
        self.seconds = float("inf") if checkpoint.seconds is None else checkpoint.seconds
        self.most = float("inf") if max_time is None else OF_MAX_TIME * max_time
        if os.path.isdir(self.path):
            raise IsADirectoryError(errno.EISDIR, "The checkpoint must be a file, not a folder", self.path)
        if os.path.exists(self.path):
            self.found = read(self.path, identity)
        self.try_folder()
        self.next, self.reads = perf_counter() + min(self.seconds, self.most), None

    @property
    def active(self):
        """Whether there is anything to write to."""
        return self.path is not None

    @property
    def part(self):
        return f"{self.path}.part"

    def try_folder(self):
        """Say now, not after an hour, that nothing can be written here."""
        try:
            with open(self.part, "wb"):
                pass
            os.remove(self.part)
        except OSError as error:
            raise type(error)(error.errno, f"The checkpoint cannot be written ({error.strerror})", self.path) from None

    def due(self, reads):
        """Whether a state of so many reads of the data should be written."""
        if self.path is None:
            return False
        if self.reads is None:
            self.reads = reads
        return perf_counter() >= self.next or (self.passes is not None and reads >= self.reads + self.passes)

    def offer(self, reads, snapshot):
        """Write ``snapshot()`` if that is due."""
        if self.due(reads):
            self.write(reads, snapshot())

    def write(self, reads, state):
        """Replace the file; where that fails the old one stays, the fit goes on, and a warning says so once."""
        begin = perf_counter()
        try:
            self.put(state)
        except OSError as error:
            self.remove_part()
            self.tell(error)
        except BaseException:
            self.remove_part()
            raise
        now = perf_counter()
        # a call with a time limit must get on however slow the disk: it is made again and again
        self.next, self.reads = now + min(max(self.seconds, LEISURE * (now - begin)), self.most), reads

    def put(self, state):
        write(self.path, self.part, self.identity, state)

    def remove_part(self):
        with suppress(OSError):
            os.remove(self.part)

    def tell(self, error):
        if not self.warned:
            self.warned = True
            left = "the one written before stays" if os.path.exists(self.path) else "there is none yet"
            warnings.warn(f"The checkpoint {self.path} could not be written ({error.strerror or error}); {left}, "
                          "training goes on, and the next is tried in its turn.", RuntimeWarning, stacklevel=2)

    def end(self, stopped):
        """The fit has stopped so: only one that time or an interrupt has ended may be gone on with."""
        self.ended = stopped not in ("max_time", "interrupted")

    def close(self):
        """After the weights are stored: the file of a fit that came to its end goes."""
        if self.path is not None and self.ended and os.path.exists(self.path):
            os.remove(self.path)


NO_CHECKPOINTER = Checkpointer()


class Resumable:
    """A run whose state is its attributes, but for ``made_again``: what data, parameters and this call make anew."""

    made_again: tuple[str, ...] = ()

    def snapshot(self):
        return {name: value for name, value in vars(self).items() if name not in self.made_again}

    def go_on_from(self, state):
        """Instead of the preparations of a run that begins."""
        vars(self).update(state)


# ---------------------------------------------------------------- the file

class Summed:
    """A file to write to that sums what is written."""

    def __init__(self, file):
        self.file, self.size, self.sum = file, 0, 0

    def write(self, data):
        data = memoryview(data).cast("B")
        for lo in range(0, len(data), PIECE):
            self.sum = zlib.crc32(data[lo:lo + PIECE], self.sum)
        self.size += len(data)
        return self.file.write(data)


def write(path, part, identity, state):
    with open(part, "wb") as file:
        summed = Summed(file)
        summed.write(MAGIC)
        pickle.dump(identity, summed, protocol=5)
        pickle.dump(state, summed, protocol=5)
        file.write(TRAILER.pack(summed.size, summed.sum))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    bring_name_to_disk(os.path.dirname(path) or ".")


def bring_name_to_disk(folder):
    """The folder too has to reach the disk, where the system lets it be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read(path, identity):
    """The state in the file; ValueError where it is no checkpoint, damaged, or one of another fit."""
    with open(path, "rb") as file:
        found = file.readline(len(OF_ANY_FORMAT) + 10)
        if found != MAGIC:
            raise unreadable(path, file, found, identity.get("the version of cmargin"))
        if not is_whole(file):
            raise ValueError(f"The checkpoint {path} is cut short or damaged; remove it to train from the beginning.")
        file.seek(len(MAGIC))
        there = OwnUnpickler(file).load()
        for name in {**there, **identity}:
            if there.get(name) != identity.get(name):
                raise ValueError(f"The checkpoint {path} is of another fit: {name} was {there.get(name)} there and is "
                                 f"{identity.get(name)} here; give these back, another path, or remove it.")
        return OwnUnpickler(file).load()


def unreadable(path, file, first_line, version):
    """What is wrong with a file that begins with another line; the version that wrote it where it says so."""
    if not first_line.startswith(OF_ANY_FORMAT) or not is_whole(file):
        return ValueError(f"{path} is not a checkpoint that this version of cmargin can read; give another path, or "
                          "remove it.")
    file.seek(len(first_line))
    wrote = OwnUnpickler(file).load().get("the version of cmargin")
    number = first_line[len(OF_ANY_FORMAT):].decode("ascii", "replace").strip()
    return ValueError(f"The checkpoint {path} was written by cmargin {wrote} in format {number}, and cmargin {version} "
                      f"here reads format {FORMAT}; finish the fit with the build that began it, give another path, or "
                      "remove it.")


def is_whole(file):
    file.seek(0, os.SEEK_END)
    left = file.tell() - TRAILER.size
    if left < len(MAGIC):
        return False
    file.seek(left)
    size, wanted = TRAILER.unpack(file.read(TRAILER.size))
    if size != left:
        return False
    found = 0
    file.seek(0)
    while left > 0:
        piece = file.read(min(PIECE, left))
        found, left = zlib.crc32(piece, found), left - len(piece)
    return found == wanted


class OwnUnpickler(pickle.Unpickler):
    """Makes arrays and objects of this package's classes, and calls nothing else."""

    def find_class(self, module, name):
        source = module.partition(".")[0]
        if source == "numpy" and name in MAKERS:
            return super().find_class(module, name)
        if source == "cmargin" and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"a checkpoint holds no {module}.{name}")
