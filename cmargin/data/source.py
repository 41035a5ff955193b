"""What may be asked of the rows of a data matrix, wherever they are: the one seam of the package.

`open_rows` makes a `DataSource` of whatever is given, once for all problems posed on it; every solver has a view of the
data source that it reads the rows by, and knows nothing else of X. `RowPass` is the view of Newton's method, and the
one that rows which are not here can answer: it holds the rows of one binary problem, labels and sample weights folded
into a signed weight s_i y_i, and what it keeps of every row besides: the slack u_i = 1 - y_i <w, x_i> (or t_i - y_i <w,
x_i>, where rows have offsets t_i), its change, a dual variable. None of that crosses the seam, in either direction, but
for `margins`. What a solver receives is a **sum over all rows**, so data sources compose: chunks in order, ranks by one
reduction of a packed buffer, partitions folded in order (`tests/support/elsewhere.py` is a data source made of data
sources). What it gathers are a few rows, in memory on its own side.

The other views are of rows in memory: their compiled steps read one row, or a list of rows, at a time. How a method
is done and what its arguments are is written where it is done, in the file of that view.

A data source promises the same bits for any number of threads; data sources over ranks or workers promise equality to
rounding.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

SINGLE_BLOCK, TANGENTS = 2, 3    # with_hessian: as `block_wanted` of the compiled passes has it


class DataSource(Protocol):
    in_memory: bool             # all views are of rows in memory; else those whose answers are sums
    shares_reads: bool          # one read answers the questions of all problems that wait for one, and takes long
    checkpoints: bool           # what passes keep of the rows can be written down
    n_rows: int
    n_features: int
    dtype: np.dtype             # float32 or float64
    sparse: bool                # rows are lists of columns and entries
    entries: int                # numbers that are stored
    row_is_contiguous: bool     # those of a row lie together: others would come from memory one by one
    y: object                   # what was given beside the rows: labels, or None
    reads: float                # of all rows so far, where one serves all who ask
    agreed: object              # what shards have agreed on of labels and weights, in place of y; None: y is here

    def take(self, rows, dtype):
        """A few rows, an array of their places or a slice, as an array in C order or CSR, in memory where one asks."""

    def keep(self, rows):
        """A data source of these rows alone and their labels; a copy."""

    def over_columns(self, scale):
        """A data source of the rows with every column over its entry of ``scale``; a copy."""

    def in_units(self, columns):
        """A data source of the rows in `Columns`; a copy, chunk by chunk where rows are read so. This one may be no
        other.
        """

    def largest(self):
        """The largest absolute value of an entry."""

    def sum_of_squares(self, most_rows):
        """Of all entries, and of how many rows: all that are sparse, about ``most_rows`` dense ones."""

    def describe(self):
        """`DataStats`: pure numbers, from which it is foreseen what a fit costs."""

    def visit(self, see):
        """``see(first, X)`` of all rows in pieces, in memory: ``first`` is the place of its first row; a read."""

    def let_go(self):
        """The fit is over: nothing is read from here on."""

    # ------------------------------------------------------------ views

    def row_pass(self, signed_weight, *, intercept, n_threads, offset=None):
        """`RowPass` of the problem ``signed_weight``, (n_rows,): sample weights with the signs of the class.

        ``offset``: (n_rows,) t_i of slacks u_i = t_i - y_i <w, x_i>, None: 1 in every row. A target t of a regression
        has signed weight s, a base margin b of a class the offset 1 - y b. Shards have it beside their labels; a
        device takes none of the hinge.
        """

    def reduced(self, least=0.0, beside=None):
        """The rows in as many columns as there are rows, and the way there and back (`WideRows`); a read.

        What a row has of its own beside others may be left out if it is no longer than ``least``. ``beside``: other
        vectors (q, n_features), as many columns more, in which they are `WideRows.beside`.
        """

    def dual_rows(self, intercept, free, weights, l2, loss):
        """What all problems share that are solved by the dual; its ``row_pass(signed_weight, offset=None)`` is a
        `DualPass`; the offset, as of `row_pass`, is for losses of residuals.
        """

    def gram_matrix(self, intercept, free, whole=True):
        """`GramMatrix`: the products of all rows with each other, dense and in memory, for many binary problems;
        or `ListedProducts`, of those that a problem lists.
        """

    def one_class_rows(self, weights, nu, least):
        """`OneClassRows`: the dual of the one-class problem; ``least``: what a gap is relative to at least."""

    def lane_rows(self, weights, l2, l2_bias, n_problems):
        """`LaneRows`: what problems of the squared hinge share that are solved side by side, in memory.

        ``l2_bias``: None without an intercept, 0 where it is free.
        """

    def joint_rows(self, labels, weight, n_classes, l2, intercept, free, stream):
        """`JointRows`: the dual of the joint hinge of ``labels``, (n_rows,) of 0 .. n_classes - 1."""

    def score_blocks(self, Y, weight, n_threads):
        """`ScoreBlocks`: one-vs-rest problems, the columns of the sparse indicator ``Y``, block by block together."""

    def softmax_pass(self, labels, weight, n_classes, intercept, n_threads):
        """`SoftmaxPass`: the multinomial problem of ``labels``, (n_rows,) of 0 .. n_classes - 1."""

    def class_columns(self, columns, labels, weight, n_classes, intercept, n_threads, grouped):
        """`ClassColumns`: the same of some ``columns``, with their quadratic model; in memory."""

    def shared_start(self, labels, weights, intercept, l2, loss):
        """Weights of all problems from one factor of a sample of rows, and their mean losses (`SharedStart`)."""

    def stochastic_rows(self, n_threads):
        """`StochasticRows`: one row at a time, as it is or whitened."""


class Shards(Protocol):
    """What may be asked besides of a source whose rows lie in shards, ranks or partitions."""

    sizes: list[int]            # rows of every shard
    redistribute: Callable[[int], None] | None       # by a seed: every shard gets rows from all, where that is offered

    def take_folds(self, folds):
        """A list of `FoldOfShards`: the problems of `row_pass` are numbered fold after fold from here on."""

    def products_held_out(self, number, W, intercept):
        """(n, len(W)) scores of the rows that fold ``number`` holds out, in the order of their places, by weights with
        the intercept last."""

    def walkers(self, most, enough, work, *about):
        """`ShardWalkers` whose works are ``work(shard, *about)``. A source that can choose how many there are has
        ``most``, and fewer where they would have less than ``enough`` rows each."""


class RowPass(Protocol):
    n_rows: int                 # rows read by one evaluation
    n_columns: int              # features, and the column of ones if there is one (the last)
    n_features: int
    total_weight: float         # sum of s
    share: float                # cost of an evaluation, in reads of the whole data
    rounding: float             # of an evaluation's sum, beside the root mean square of a term
    offset: object              # not None where rows have offsets: a bound's gain is then another sum (GAIN_POS)

    # ------------------------------------------------------------ sums

    def start(self, primal=False):
        """w = 0: u = 1 in every row, or its offset."""

    def set_loss(self, loss):
        """The hinge, smoothed; or a smooth `Loss` with a dual, as the logistic one: widths mean nothing then, the
        objective takes the place of the hinge among the sums, and two sums more say what the dual variables add to the
        bound."""

    def pursue(self, level, scale):
        """Of margin pursuit, with this level and scale, instead: line value, slope and curvature are among the sums, no
        dual, and the gradient's second row is sum s y x in the first evaluation after `start`."""

    def set_active(self, active):
        """Columns of the curvature block from the next evaluation on: ascending indices, or None for all."""

    def evaluate(self, direction, step, line_width, width, curvature_floor, with_hessian=True, move=None):
        """Move to u - step * y (X direction) and sum there; a read of X.

        ``direction`` is a Newton step. ``move`` (`data/moves.py`): from w = 0, RESTART; from where the last evaluation
        was, whose step is taken, COMMIT_AND_MOVE; or SAME_LINE without a direction: another part of the last one, whose
        change is still known per row. None: as the direction says, and whether there was an evaluation since `start`.

        Returns ``(sums, gradient, hessian)``. sums: smoothed hinge at ``line_width`` and its slope in the step,
        hinge, smoothed hinge at ``width``, predicted dual variables of the positive and of the negative rows, number
        of curvature rows, curvature of all rows. gradient: (3, n_columns), the sum of r x for r = s y a at ``width``
        and for the predicted dual variables clip(a + h du, 0, 1) of the positive and negative rows, where a, h belong
        to the rows before the step at ``line_width`` and du is the change of the full direction. hessian: upper
        triangle of sum s h x x' over the active columns, of rows with h <= ``curvature_floor`` its diagonal alone
        (``_row_blocks.pyx``); None if not asked for. With SINGLE_BLOCK products may be rounded to single precision.
        With TANGENTS there is no hessian, and in place of predicted dual variables there are the slopes at ``width``:
        straight lines that touch the smoothed hinge there. A loss that is smooth itself has its own slopes in place of
        predicted dual variables after a RESTART, and no line. All three may be overwritten by the next call.

        h is the curvature with the dual variable as an unknown of its own; rows carry that variable from evaluation to
        evaluation. The first evaluation after `start` knows none and takes F''(u), as every one does after
        start(primal=True).
        """

    def line(self, step, width):
        """(value, slope, curvature) of the loss in the step along the last direction; no read of X."""

    def hessp(self, x, width, curvature_floor=0.0):
        """sum s h x_i <x_i, x> at the last evaluation, for x None the diagonal sum s h x_i^2; a new array; a read.

        The second answer is the share of the rows that were read: CSR rows below the floor are left out.
        """

    def objective(self, w, squares=False):
        """Sum s F(y <w, x>) at ``w``, F not smoothed, and sum s x^2 or None: a read; the state stays as it is.

        A certificate rests on it: slacks followed step by step carry the rounding of every step.
        """

    def margins(self):
        """y <w, x> at the last evaluation, (n_rows,); no read of X. For the trace of margin pursuit and its one-shot
        scale, which are order statistics: nothing else asks for an array of the rows' length."""

    def sides(self):
        """How many rows are positive and negative, and their weights: two pairs."""

    # ------------------------------------------------------------ a few rows, in memory where the solver is

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        """A pass over rows of either side chosen with these probabilities, their weights divided by them.

        A row is chosen by the hash of the seed and its place in the whole data: the choice does not depend on how
        rows are split. With ``column_weight``, rows of larger sum_j weight_j x_ij^2 are chosen more often, up to 2.8
        times (`_row_sample`), those of 1 with the given probability. The second answer is the share of the data that
        was read.
        """

    def measure_rows(self, weight):
        """Let the next evaluation also sum weight_j x_ij^2 for every row; the data source keeps them."""

    def mean_measure(self):
        """After that evaluation: the mean of these sums, which are asked for no more."""

    # ------------------------------------------------------------ the rows near the hinge, beside all others

    def foresee_working_set(self):
        """Before an evaluation with TANGENTS that measures the rows: `gather_working_set` may be asked after it."""

    def forget_working_set(self):
        """It will not be asked again."""

    def gather_working_set(self, share, most, moved, width, sample=None):
        """After an evaluation with TANGENTS: the working set as a row pass of its own, and the sums of its lines.

        About a ``share`` of the rows are in it, by slack beside measure where the lines touch the hinge: ``moved``,
        at the last evaluation, else where they did before. Besides those that were in it before, and those that are on
        another side of the hinge now than where the lines touched before, the first that crossed first, up to a share
        again, and ``most`` in all (``data/working_set.py``). ``sample``: (positives, negatives, seed), far rows chosen
        by the hash as in `gather_sample` are in the pass too, each for as many as it stands for.

        Returns
        -------
        None where these are the rows of the last time, and where there is none; or what has an ``answer``, perhaps
        later, of which `work` is then to be asked:

        part : RowPass
        vectors, totals : (2, n_columns) and (2,) arrays
            Sums of s a y x over its positive and negative rows, and of s a: a the slopes at ``width`` where the lines
            touch, s with the weights of a sample.
        distance : float
            Mean of the absolute u of the working set there.
        reads : float
            What this has cost.
        """


class KeptRowPass(RowPass, Protocol):
    """A row pass that can be written to a checkpoint, between two evaluations."""

    def kept(self):
        """What is kept of every row, a dictionary of arrays and numbers, or what stands for it."""

    def take_back(self, kept):
        """What another pass of the same problem on the same rows had `kept`."""


class LocalRowPass(KeptRowPass, Protocol):
    """A row pass in memory also has numbers of every row, for where a problem goes from one solver to another."""

    def dual_variables(self):
        """(n_rows,) as the evaluations left them."""

    def state(self):
        """All that is kept of the rows and of the evaluations so far, to be sent or stored: `MemoryRowPass.from_state`
        goes on from there. Not to be written to, for others may go on from it too."""

    def dual_sums(self, a, loss, must_balance):
        """What a bound is made of at dual variables ``a`` (n_rows,) found by other means; a read."""


class DualPass(Protocol):
    """`DualBlocks`: compiled code reads them, one row of a list after the other."""

    shared: object              # what all problems have in common
    reads: float                # done, in reads of all rows

    def products(self, listed, v):
        """(n,) y <(x, bias), v> of listed rows."""

    def add(self, listed, c, v):
        """v += sum c y (x, bias) over them."""


class ScoreBlocks(Protocol):
    n_rows: int
    n_features: int
    n_problems: int
    n_threads: int
    source: DataSource
    Y: object                   # (n_rows, n_problems) CSR indicator
    weight: np.ndarray          # (n_rows,) of mean 1, or None

    def sums(self, W, bias, loss):
        """Values and gradients of all problems; a read. ``loss``: its number, level, (n_problems,) scales."""

    def sums_of(self, block, W, bias, loss):
        """The same over one slice of rows."""

    def margins(self, W, bias):
        """Yield every group of problems, a slice, and their margins, an array of (n_rows,) each; a read."""

    def map(self, function):
        """``function(block)`` of every slice of rows, in their order."""

    def rows(self, block):
        """The rows of a slice, float64."""

    def row_squares(self):
        """(n_rows,) of ``|x|^2``; a read."""

    def largest_curvature(self, intercept, n_products=8):
        """The largest eigenvalue of the second moment, from below; so many reads."""

    def some_rows(self, size):
        """Rows that stand for all, in memory as float64, their labels (n_problems, size) of -1 and 1, and weights."""

    def ridge_start(self, intercept, l2):
        """Weights and intercepts of one ridge regression of all problems, from a sample of rows."""

    def reduce(self, columns=False):
        """Make ready for `row_pass`, with ``columns`` in as many columns as rows; what that costs in reads."""

    def row_pass(self, c, intercept, n_threads, w=None):
        """`LocalRowPass` of problem c, perhaps in fewer columns, and weights ``w`` in its columns."""

    def out_of(self, w, intercept):
        """Weights of a `row_pass` in the columns of X."""

    def units(self, columns, intercept):
        """``columns`` (`Columns` of X, or None) as a `row_pass` has them."""


class SoftmaxPass(Protocol):
    """What is kept of every row, scores above all, may be elsewhere (`data/softmax_sums.py`)."""

    n_rows: int
    n_features: int
    n_columns: int
    n_classes: int
    entries: int                # stored numbers of all rows
    single: bool                # which are float32
    intercept: bool
    sparse: bool
    precise: bool               # products are made in float64
    reads: float
    shares: np.ndarray          # (n_classes,) of the rows, by weight
    scores: np.ndarray          # (n_rows, n_classes), at the last point, or (0, 0) where rows are elsewhere;
    probs: np.ndarray           # their softmax,
    change: np.ndarray          # and room for products with a direction
    kernel: object              # what the compiled step reads the rows by,
    per_call: int               # so many blocks of them in a tenth of a second
    n_threads: int

    def between_slices(self):
        """Put here by the solver; called about ten times a second, and may raise."""

    def keep(self, dtype):
        """Make products in ``dtype`` from here on."""

    def risk(self, V):
        """Risk and gradient at V; a read, half of one without weights."""

    def exact(self, V, least=1e-14, n_corrections=4):
        """V with the best intercepts, to ``least`` of a class; risk, entropy and gradient there in float64; a read."""

    def class_sums(self):
        """(n_features, n_classes) of (1/N) sum_i s_i x_i over the rows of a class; half a read."""

    def class_curvature(self, stride=1, exact=False):
        """(n_classes, n_classes) mean of diag(p) - p p' over every ``stride``-th row; in an `exact`, of its own p."""

    def go(self, step):
        """Go on with a `MultinomialStep`; whether it is done."""

    def go_on(self, newton, most):
        """Go on with a `MultinomialNewton` for a tenth of a second or a pass, to ``most`` steps; what its `go` says."""

    def kept(self):
        """What `take_back` takes of the rows' state, for a checkpoint."""

    def take_back(self, kept):
        """Go on with the scores and probabilities that were `kept`."""

    def weight_of(self, subset):
        """Weights of a few rows, ascending places."""

    def probs_of(self, subset):
        """Their probabilities, float32."""

    def copy_of(self, subset):
        """A few rows, float32."""

    def dense_copy_of(self, subset):
        """The same, dense."""

    def in_single_precision(self):
        """All rows, float32 and dense."""


class StochasticRows(Protocol):
    n_rows: int
    n_features: int
    n_threads: int
    dtype: np.dtype
    sparse: bool
    by_batches: bool            # no compiled step can read a single row: they live elsewhere
    rows: object                # what compiled steps read single rows by

    def between_chunks(self):
        """Put here by the solver; called between two kernels, and may raise."""

    def scores(self, W, bias, subset):
        """(len(subset), n_classes) scores of a few rows."""

    def mean_row(self, subset, weight):
        """(n_features,) mean of a few rows."""

    def leading_pairs(self, subset, curvature, k, n_values, centre=None):
        """Leading eigenpairs of weighted second moments of a few rows."""

    def mean_square(self, inverse, subset, weight=None):
        """Mean of x'H*x over a few rows."""

    def whiten(self, inverse, order=None, out=None):
        """(n_rows, width) whitened rows, in this order; a read."""

    def as_they_are(self):
        """Rows for steps without whitening."""

    def row_numbers(self, entry_cost):
        """Numbers read for one row, on average."""

    def column_scale(self, weight):
        """(n_features,) root mean square of every column; a read."""

    def over_columns(self, scale):
        """The rows with every column over its entry of ``scale``; a copy."""


class Walkers(Protocol):
    """Stochastic steps from weights of each walker's own, which their mean joins now and then.

    A walker steps through the rows of a shard, or of several one after the other: a rank's, partitions, windows of rows
    in files. What is kept and done with the rows of a shard is an object of the solver's, the work. Weights are a
    dataclass with ``base``, which no step moves, ``packed(part)``, what they give to a sum, and ``take(total)``, which
    makes them the mean.
    """

    rows: list[int]             # of every walker
    of_shard: list[int]         # the walker of every shard, -1 for one without rows

    def share_out(self, shares, parts):
        """Before `begin`: each shard's share of a pass, and the part of each walker's weights in the mean."""

    def begin(self, inverse, weights):
        """Whiten the rows by ``inverse``, now or as they are read, and let all walkers begin at these weights."""

    def walk(self, weights, steps):
        """One of the parts of a pass from ``weights``: the mean of where the walkers end, and sums of what they met."""


class ShardWalkers(Walkers, Protocol):
    """`Walkers` in other processes, which are given the class of a work and make it of a `Shard`: once for a fit on
    every rank, anew in every task on a worker."""

    def ask(self, method, *arguments):
        """What the works of all shards with a walker answer, in the order of the shards."""

    def start(self, inverse, weights):
        """Let walkers go on from other weights; the rows are whitened already."""

    def begin_pass(self, number):
        """Draw what the pass visits."""


class KeptWalkers(ShardWalkers, Protocol):
    """`ShardWalkers` whose draws go on from pass to pass, and can be written to a checkpoint."""

    def keep(self):
        """What `restore` takes."""

    def restore(self, kept):
        """After `begin`: go on with the draws as at that `keep`."""
