"""Rows in files in a random order: pieces from all over the files come to memory together, a window after the other.

Rows may lie sorted, by class above all; a window of rows that lie together would then have few classes, and batches
from it would draw the weights to their side. Labels are in memory, so it is known before a row is read what a window
would be made of: pieces are so long that reads are few, and as much shorter as it takes for every window to have its
share of each class. Which rows those are follows from labels, sizes and a seed, not from how the rows are stored.
"""

import numpy as np
import scipy.sparse as sp

from cmargin.data.files.formats import Room
from cmargin.data.files.read_ahead import ReadAhead

PIECES = 8                   # of a window at least,
SHORTEST = 1 << 14           # and bytes of a piece at least (doc/lab-notebook)
UNEVEN = 0.02                # part of a window's rows that may be of other classes than of its share, beyond chance
ENDLESS = 1 << 62


class Windows:
    """Windows of the rows, pass by pass; ``truth`` (n_rows,) int64: the class of every row."""

    def __init__(self, source, truth, n_classes, seed):
        self.source, self.truth, self.n_classes, self.seed = source, truth, n_classes, seed
        self.size = max(1, source.chunk // source.files.row_bytes)
        self.n = max(1, -(-source.n_rows // self.size))
        self.edges = self._pieces()
        self.n = min(self.n, len(self.edges) - 1)            # windows of a pass
        self.seen = np.zeros(len(self.edges) - 1, bool)
        self.planned = None, None
        self.ahead = source.reader(ReadAhead(ENDLESS, source.given_up))

    # ------------------------------------------------------------ which rows

    def _pieces(self):
        """Where each begins, and the end of the last."""
        files, n = self.source.files, self.source.n_rows
        if not files.any_rows:
            return np.array([*(lo for lo, _ in files.chunks(1)), n])
        length = max(1, self.size // PIECES)
        while True:
            edges = np.append(np.arange(0, n, length), n)
            shorter = length // 2
            if shorter * files.row_bytes < SHORTEST or self.n == 1 or self._even(edges):
                return edges
            length = shorter

    def _even(self, edges):
        """Whether windows of these pieces have each class in its share, as nearly as random rows would."""
        window = np.empty(len(edges) - 1, np.int64)
        for w, pieces in enumerate(self._deal(edges, np.random.default_rng([self.seed, 0]))):
            window[pieces] = w
        key = np.repeat(window, np.diff(edges)) * self.n_classes + self.truth
        counts = np.bincount(key, minlength=self.n * self.n_classes).reshape(self.n, -1)
        shares, sizes = counts.sum(axis=0) / counts.sum(), counts.sum(axis=1)
        moved = np.abs(counts - sizes[:, None] * shares).sum() / 2
        chance = np.sqrt(sizes[:, None] * (shares * (1 - shares)) / (2 * np.pi)).sum()
        return moved <= 1.2 * chance + UNEVEN * counts.sum()

    def _deal(self, edges, rng):
        """The pieces of every window: those of each class are dealt out in turn, to windows in a random order."""
        of_class = self.truth[(edges[:-1] + edges[1:]) // 2]
        order = np.lexsort((rng.random(len(of_class)), of_class))
        n_full = len(order) // self.n * self.n
        dealt = rng.permuted(order[:n_full].reshape(-1, self.n), axis=1)
        hands = [dealt[:, w] for w in range(self.n)]
        for w, piece in zip(rng.permutation(self.n), order[n_full:], strict=False):
            hands[w] = np.append(hands[w], piece)
        return [np.sort(hand) for hand in hands]

    def plan(self, number):
        """The pieces of every window in pass ``number``."""
        if self.planned[0] != number:
            self.planned = number, self._deal(self.edges, np.random.default_rng([self.seed, number]))
        return self.planned[1]

    # ------------------------------------------------------------ reading

    def of_pass(self, number):
        """Yield (rows, X) of all windows of a pass: places of rows among all, and the rows, until the next is taken."""
        for w in range(self.n):
            yield self.ahead.take(self.load, number * self.n + w, heard=self.source.heard)

    def load(self, k, room):
        """On a thread of its own."""
        number, w = divmod(k, self.n)
        pieces = self.plan(number)[w]
        spans = [(int(self.edges[piece]), int(self.edges[piece + 1])) for piece in pieces]
        parts, n = [], sum(hi - lo for lo, hi in spans)
        out = None if self.source.sparse else room.array("window", (n, self.source.n_features), self.source.dtype)
        at = 0
        for piece, (lo, hi) in zip(pieces, spans, strict=True):
            X = self.source.files.read(lo, hi, Room(self.source.given_up))
            if not self.seen[piece] and self.source.check is not None:
                self.source.check(X)
            self.seen[piece] = True
            X = self.source.translated(X)
            if out is None:
                parts.append(X)
            else:
                out[at:at + hi - lo] = X
                at += hi - lo
        rows = np.concatenate([np.arange(lo, hi) for lo, hi in spans])
        return rows, sp.vstack(parts, "csr") if out is None else out
