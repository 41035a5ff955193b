"""SLND on the multinomial risk over ranks: the driver on rank 0, `LocalPasses` on all of them."""

import copy
import uuid

import numpy as np

from cmargin.solvers.sgd.over_places import LocalPasses, MultinomialOverPlaces, PlaceCounts


class OfRanks:
    """A run by the work ``key`` of all ranks; to be put before it among the bases.

    `_put_back` tells the ranks what `Run.go_on_from` has found, before each takes back what it kept itself.
    """

    def _ask(self, *what):
        return self.all.call("work", self.key, *what)

    def snapshot(self):
        name = uuid.uuid4().hex
        self._ask("keep", name)
        return {**super().snapshot(), "name": name}

    def go_on_from(self, state):
        name = state.pop("name")
        super().go_on_from(state)
        self._put_back()
        self._ask("take_back", name)


class MultinomialOverRanks(OfRanks, MultinomialOverPlaces):
    """`MultinomialOverPlaces` on a `RankHome`."""

    made_again = (*MultinomialOverPlaces.made_again, "key")

    def _open(self, n_classes, entropy):
        self.key = self.all.new_key()
        self.largest, self.n_places = max(self.all.sizes), np.count_nonzero(self.all.sizes)
        self.uneven = PlaceCounts(self.all).uneven()
        self.all.call("begin_work", self.key, LocalPasses, self.n_rows, n_classes, entropy)

    def _sampled(self, share):
        return self._ask("sample", share)

    def _spread(self, W, bias):
        self._ask("whiten", self.fit.inverse, bool(self.n_held), self.n_batches)
        self._ask("start", self.fit.inverse, W, bias, self.settings.average)

    def _put_back(self):
        self._ask("whiten", self.fit.inverse, bool(self.n_held), self.n_batches)

    def _one_pass(self, step):
        for part in np.array_split(np.arange(self.n_batches), self._n_parts()):
            self._ask("part", int(part[0]), int(part[-1]) + 1, step * self.n_places, self._bias_rate())
            self.n_done += len(part)
            self.all.average(self.key, self.n_places, self.n_done)
            self.weights = copy.deepcopy(self.all.place.works[self.key].weights)
            self.clock.watch()
        sums = np.sum(self._ask("met"), axis=0)
        self.fit.reads += sums[3] / self.n_rows
        return sums[0], sums[1], sums[2], int(sums[3])

    def undo_divergence(self):
        super().undo_divergence()
        if self.fit.diverged.any():
            self.n_done = 0
            self._ask("start", self.fit.inverse, *self.weights.linear(self.fit.inverse), self.settings.average)
