"""What a fit over ranks costs on paper: rows, what rank 0 does alone, latency and bytes of messages (doc/scaling.md).

    seconds = rows / n_ranks + alone + evaluations * ceil(log2 n_ranks) * 2 latency + bytes * ceil(log2 n_ranks) / rate

Nothing here is measured; `asv_benches/compare_scaling.py` measures the constants of `Machine` and the counts of `Fit`.
"""

from dataclasses import dataclass, replace

import numpy as np

NUMBER = 8                     # bytes of a number in a message
REQUEST, STATE, SUMS = 8, 2, 16          # numbers of a request beside the vector, of the state, of an evaluation's sums
MESSAGES_OF_A_CALL = 6         # the request, what is asked in two, lengths, the longest, answers
AVERAGES = 10                  # of a pass of SLND


@dataclass(frozen=True)
class Machine:
    """Seconds, of one rank on one core.

    Attributes
    ----------
    row, column, square : float
        Of an evaluation: for a row, for a row and column, and for a row with curvature and entry of the triangle.
    line : float
        For a row, along the line.
    softmax : float
        For a row, class and whitened column of a multinomial pass.
    question : float
        Between two questions: Python, and what the driver decides.
    answer : float
        Of Python on rank 0 for what one rank answers to a call.
    latency, byte : float
        Of a message from one rank to another: its start, and every byte of it.
    """

    row: float
    column: float
    square: float
    line: float
    softmax: float
    question: float
    answer: float
    latency: float
    byte: float

    def evaluate(self, n_columns, curved):
        """Seconds of a row in an evaluation at which this share of the rows has curvature."""
        return self.row + self.column * n_columns + curved * self.square * triangle(n_columns)


@dataclass(frozen=True)
class Fit:
    """How often a fit asks what, counted on a machine where it was done.

    Attributes
    ----------
    curved : float
        Evaluations with curvature times the share of rows that have it, in reads of all rows.
    reads : float
        Evaluations, objectives and Hessian-vector products, in reads of all rows.
    line : float
        Questions along a line, times the share of the rows in question.
    evaluations, blocks, lines, products : int
        Questions, whatever rows they are put to: evaluations, those with curvature, along the line,
        products and objectives.
    calls : int
        Of methods by their name, which every rank answers for itself.
    """

    curved: float
    reads: float
    line: float
    evaluations: int
    blocks: int
    lines: int
    products: int
    calls: int = 0


@dataclass(frozen=True)
class Terms:
    """Seconds of one fit or pass."""

    rows: float
    alone: float
    latency: float
    bytes: float

    @property
    def total(self):
        return self.rows + self.alone + self.latency + self.bytes


def triangle(n_columns):
    return n_columns * (n_columns + 1) / 2


def evaluation_bytes(n_features, n_columns, block=0):
    """Bytes of the request and of the sums of an evaluation, `block` columns of which have curvature."""
    return request_bytes(n_features), NUMBER * (STATE + SUMS + 3 * n_columns + block * (block + 1) // 2)


def request_bytes(n_features):
    return NUMBER * (REQUEST + n_features + 1) + -(-(n_features + 1) // 8)


def average_bytes(n_classes, width):
    """Bytes of one mean of SLND's weights, each way: U and its mean, two intercepts, and of how many it is."""
    return NUMBER * (2 * n_classes * width + 2 * n_classes + 1)


def depth(n_ranks):
    """Messages one after the other in a tree of so many ranks."""
    return np.ceil(np.log2(np.maximum(n_ranks, 1)))


def sums_fit(machine, fit, n_rows, n_features, n_ranks, n_problems=1):
    """`Terms` of SmSVM or margin pursuit: every problem by itself, each question one Bcast and one Reduce.

    Rank 0 factors every block, and hears the answers to calls one after the other.
    """
    p, hops = n_features + 1, depth(n_ranks)
    rows = n_rows / n_ranks * (fit.reads * machine.evaluate(p, 0) + fit.curved * machine.square * triangle(p)
                               + fit.line * machine.line)
    questions = fit.evaluations + fit.lines + fit.products
    factors = fit.blocks * p**3 / 6 * machine.square                 # one multiplication and addition for an entry
    alone = (questions * machine.question + fit.calls * n_ranks * machine.answer + factors)
    messages = 2 * questions + MESSAGES_OF_A_CALL * fit.calls
    return Terms(*(n_problems * term for term in (
        rows, alone, messages * hops * machine.latency, fit_bytes(fit, n_features) * hops * machine.byte)))


def fit_bytes(fit, n_features):
    """Bytes of one rank's buffers in the questions of a fit, calls apart; curvature blocks have all columns."""
    p = n_features + 1
    request, sums = evaluation_bytes(n_features, p)
    questions = fit.evaluations + fit.lines + fit.products
    return (questions * request + fit.evaluations * sums + fit.blocks * NUMBER * triangle(p)
            + fit.lines * NUMBER * (STATE + 3) + fit.products * NUMBER * (STATE + p + 1))


def slnd_pass(machine, n_rows, n_classes, width, n_ranks, averages=AVERAGES):
    """`Terms` of a pass of multinomial SLND or BSN: each rank's own steps, and so many means of all weights."""
    hops, sent = depth(n_ranks), average_bytes(n_classes, width)
    own = n_rows / n_ranks * n_classes * width * machine.softmax
    alone = averages * (machine.question + 3 * sent * memory_second(machine))
    return Terms(own, alone, averages * hops * 2 * machine.latency, averages * hops * 2 * sent * machine.byte)


def memory_second(machine):
    """Seconds of a byte that is read: packing weights, unpacking them and a copy."""
    return machine.column / 4


def one_vs_rest_pass(machine, n_rows, n_classes, width, n_ranks, negatives=9):
    """`Terms` of a pass of one-vs-rest SLND as it might be: classes divided among ranks that all have all rows.

    Every class visits its positives and ``negatives`` others for each: (1 + negatives) n_rows in all. No rank has more
    work than the others only up to n_ranks = n_classes.
    """
    busiest = np.ceil(n_classes / n_ranks) / n_classes
    own = busiest * (1 + negatives) * n_rows * width * machine.softmax
    spread = 4.0 * n_rows * width * depth(n_ranks) * machine.byte            # whitened rows, single precision, once
    return Terms(own, 0 * own, depth(n_ranks) * machine.latency + 0 * own, spread + 0 * own)


def in_network(machine, latency, rate):
    """The machine with messages of another kind: seconds of latency, bytes a second."""
    return replace(machine, latency=latency, byte=1 / rate)


def speed_up_ends(terms, n_ranks):
    """The first of the ranks beyond which doubling them saves less than a quarter; None: not among these."""
    totals = [term.total for term in terms]
    for i, ranks in enumerate(n_ranks):
        twice = [j for j, other in enumerate(n_ranks) if other == 2 * ranks]
        if twice and totals[twice[0]] > 0.75 * totals[i]:
            return ranks
    return None
