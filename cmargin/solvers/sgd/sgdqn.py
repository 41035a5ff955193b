"""SGD-QN, corrected: SGD with a diagonal of gains for every class, learned on the way (``_sgdqn.pyx``)."""

from dataclasses import dataclass

import numpy as np

from cmargin._core.sgd import _class_pass, _sgdqn
from cmargin._runtime.workspace import aligned_rows
from cmargin.solvers.per_class import STEP_OVERHEAD
from cmargin.solvers.sgd.low_rank import LowRankInverse
from cmargin.solvers.sgd.plain_sgd import PlainRun
from cmargin.solvers.sgd.step_size import Trial

BIAS, BIAS_GAIN, COUNT = 0, 1, 2         # columns of `state`
SKIP = 16                # steps between two penalties: the published value, for rows as cheap as a sweep of the weights
ENTRY_COST = 4.0         # numbers of a dense row that cost as much as one entry of a sparse one


@dataclass
class LearnedGains(LowRankInverse):
    """What a fit goes on from: the diagonal B of every class beside the identity it started from."""

    gain: np.ndarray | None = None           # (n_classes, n_features)
    state: np.ndarray | None = None          # (n_classes, state_size): intercept, its gain, steps to the next penalty


@dataclass
class GainedWeights:
    """Iterates of all classes, as `ClassWeights`: W (n_classes, n_features), gains likewise, state."""

    W: np.ndarray
    gain: np.ndarray
    state: np.ndarray

    @classmethod
    def start(cls, W, bias, first_gain, bias_rate, skip):
        """``first_gain`` (n_classes,) for every weight, times ``bias_rate`` for the intercept."""
        first_gain = np.broadcast_to(first_gain, len(W))
        state = np.zeros((len(W), _sgdqn.state_size))
        state[:, BIAS], state[:, BIAS_GAIN], state[:, COUNT] = bias, first_gain * bias_rate, skip
        return cls(W.copy(), np.repeat(first_gain[:, None], W.shape[1], axis=1).astype(W.dtype), state)

    def copy(self):
        return GainedWeights(self.W.copy(), self.gain.copy(), self.state.copy())

    def finite(self):
        return np.isfinite(self.W).all(axis=1) & np.isfinite(self.state).all(axis=1)

    def put_back(self, classes, earlier):
        """Give ``classes`` (a mask) the values they had in ``earlier``, with half the gains."""
        self.W[classes] = earlier.W[classes]
        self.gain[classes] = earlier.gain[classes] / 2
        self.state[classes] = earlier.state[classes]
        self.state[classes, BIAS_GAIN] /= 2

    def linear(self, inverse):
        return self.W.copy(), self.state[:, BIAS].copy()


class QNTrial(Trial):
    """`Trial` whose step is the first gain."""

    def __init__(self, run, *arguments):
        self.run = run
        super().__init__(*arguments)

    def trained(self, relative):
        d, dtype = self.inverse.eigenvectors.shape[1], self.Z.dtype
        weights = GainedWeights.start(np.zeros((self.n_classes, d), dtype), self.start_bias, relative / self.scale,
                                      self.bias_rate[0], self.run.skip)
        by, work = self.passes.pass_into(np.zeros((self.n_classes, 3))), aligned_rows((1, 3, d), dtype)
        for visits in self.passes_drawn:
            _sgdqn.run_qn_steps(by, _class_pass.Visits(0, self.offsets, visits), 0, self.longest, self.run.l2,
                                self.run.skip, weights.W, weights.gain, weights.state, work, 1)
        return weights.linear(self.inverse)


class SGDQNRun(PlainRun):
    """One call of `train` with learned gains; ``l2`` is above 0.

    ``skip`` "auto": 16, and for CSR rows as many times more as a sweep over all weights costs more than a row.
    """

    def __init__(self, source, lists, row_weight, settings, entropy, start, l2, skip):
        super().__init__(source, lists, row_weight, settings, entropy, start)
        self.l2 = l2
        self.numbers = source.row_numbers(ENTRY_COST)
        self.skip = max(SKIP, round(SKIP * source.n_features / self.numbers)) if skip == "auto" else skip

    def prepare(self):
        s, start, fit = self.settings, self.start, self.fit
        if start.inverse is None:
            inverse, fit.spectrum = self.clock.timed("hessian", self._invert, None)
            fit.inverse = LearnedGains(**vars(inverse))
        if start.inverse is not None and start.inverse.gain is not None:
            self.weights = GainedWeights(fit.W.copy(), start.inverse.gain.copy(), start.inverse.state.copy())
        else:
            if fit.step is None:
                fit.step = self._fixed_step() if s.step_size != "auto" else self.clock.timed("steps", self._choose_step)
                self.clock.watch()               # a search cut short is no state to go on from
            self.weights = GainedWeights.start(fit.W, fit.bias, fit.step / self._scale(), float(self._bias_rate()[0]),
                                               self.skip)
        fit.inverse = LearnedGains(**{**vars(fit.inverse), "gain": self.weights.gain, "state": self.weights.state})

    def _trial(self, passes, Z, drawn, rng):
        nothing = np.empty((0, 0), self.source.dtype)
        return QNTrial(self, passes, nothing, self.fit.inverse, drawn, self._constant_bias(), self._bias_rate(),
                       self._scale(), rng)

    def _step(self):
        """(n_classes,) mean gain, for the history; the steps are the gains' own."""
        return self.weights.gain.mean(axis=1, dtype=float)

    def _one_pass(self, step):
        source, weights, runner = self.source, self.weights, self.runner
        sums = np.zeros((self.lists.n_classes, 3))
        by, work = runner.pass_into(sums), aligned_rows((runner.most_threads, 3, source.n_features), source.dtype)

        def take_steps(visits, first, last):
            _sgdqn.run_qn_steps(by, visits, first, last, self.l2, self.skip, weights.W, weights.gain, weights.state,
                                work, runner.threads)

        runner.run(take_steps, 1.5 * self.numbers + STEP_OVERHEAD)
        return sums
