"""Checkpoints: what a killed fit leaves is gone on with to the same bits, or refused in one sentence."""

import errno
import json
import os
import pickle
import warnings
import zlib
from functools import partial
from pathlib import Path

import killed_fits
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import quick_estimators
from killed_fits import same
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from started import python

from cmargin import (
    Checkpoint,
    MarginPursuitClassifier,
    PegasosClassifier,
    SLNDClassifier,
    SmSVMClassifier,
    SmSVMClassifierCV,
)
from cmargin._estimators.identity import in_words
from cmargin._runtime import checkpoint as files
from cmargin._runtime.checkpoint import Checkpointer
from cmargin.solvers.newton import slices

X, y = killed_fits.blobs(400, 9, 3)


def stopped(model, path, n=3):
    return killed_fits.stopped(model, path, n, X, y)


GRADIENT = MarginPursuitClassifier(solver="gd", max_passes=8, tol=2e-3, l2=1e-3)
MODELS = [GRADIENT, SLNDClassifier(max_passes=6, random_state=1), SmSVMClassifier(), MarginPursuitClassifier()]


# ---------------------------------------------------------------- killed

@pytest.fixture(scope="module")
def found(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("no fork")
    return json.loads(python(killed_fits.__file__, tmp_path_factory.mktemp("killed"), limit=240))


@pytest.mark.parametrize("name", killed_fits.NAMES)
def test_a_killed_fit_ends_with_the_same_bits(found, name):
    assert found[name] == ""


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("model", [SmSVMClassifier(n_jobs=2), SmSVMClassifier(linear_solver="dual", n_jobs=2),
                                   MarginPursuitClassifier(scale=0.3, n_jobs=2)], ids=["smsvm", "dual", "pursuit"])
def test_classes_wait_for_each_other_when_time_says_so(model, container, tmp_path, monkeypatch):
    # seconds alone: drivers are asked to pause while they are under way
    monkeypatch.setattr(slices, "SLICE", 1e-4)
    monkeypatch.setattr(files, "LEISURE", 0.0)
    written = []
    monkeypatch.setattr(files, "write", lambda path, part, identity, state: written.append(set(state["parts"])))
    kept = Checkpoint(tmp_path / "fit", seconds=0.0)
    rows, labels = container(np.tile(np.where(np.abs(X) > 0.6, X, 0.0), (40, 1))), np.tile(y, 40)
    assert same(clone(model).fit(rows, labels), clone(model).set_params(checkpoint=kept).fit(rows, labels))
    assert written[0] == {0, 1, 2} and all(parts <= {0, 1, 2} for parts in written)


def test_what_is_random_goes_on_too(tmp_path):
    # random_state=None: no other fit has the same bits, but what follows a checkpoint is settled
    model = stopped(PegasosClassifier(max_passes=6), tmp_path / "fit")
    state = (tmp_path / "fit").read_bytes()
    ends = []
    for _ in range(2):
        (tmp_path / "fit").write_bytes(state)
        ends.append(clone(model).fit(X, y))
    assert same(*ends) and ends[0].n_iter_ == 6


@pytest.mark.parametrize("model", MODELS, ids=lambda e: type(e).__name__)
def test_an_interrupt_leaves_the_file_and_the_end_removes_it(model, tmp_path):
    again = stopped(model, tmp_path / "fit")
    assert same(again.fit(X, y), clone(model).fit(X, y))
    assert os.listdir(tmp_path) == []
    assert (np.diff(again.history_["seconds"][again.history_["class"] == again.history_["class"][0]]) >= 0).all()


def test_seconds_go_on_from_where_they_were(tmp_path, monkeypatch):
    model = stopped(GRADIENT, tmp_path / "fit")
    there = files.read(tmp_path / "fit", identity_in(tmp_path / "fit"))
    monkeypatch.setattr(there["clock"], "begin", there["clock"].begin - 100.0)
    files.write(tmp_path / "fit", tmp_path / "part", identity_in(tmp_path / "fit"), there)
    seconds = model.fit(X, y).history_["seconds"]
    assert seconds[1] < 50 < 100 < seconds[-1]


def test_time_that_is_over_leaves_the_file(tmp_path):
    model = SLNDClassifier(loss="logistic", max_passes=10**6, max_time=0.4, random_state=0)
    whole = clone(model).set_params(checkpoint=str(tmp_path / "fit"))
    with pytest.warns(ConvergenceWarning):
        first = clone(whole).fit(X, y).n_iter_
    assert os.path.exists(tmp_path / "fit")              # a tenth of the time is often enough, whatever the 30 seconds
    with pytest.warns(ConvergenceWarning):
        assert clone(whole).set_params(max_time=0.6).fit(X, y).n_iter_ > first


@pytest.mark.parametrize("seconds", [1e-4, 3e-3, 1e-2])
@pytest.mark.parametrize("model", [SmSVMClassifier(linear_solver="dual", l2=1e-4), SmSVMClassifier(l2=1e-4),
                                   MarginPursuitClassifier()], ids=["dual", "newton", "pursuit"])
def test_a_fit_that_time_has_ended_goes_on_without_a_limit(model, seconds, tmp_path):
    # a state taken at the pause where the time was over said so, and what went on from it ended at once, for ever
    two = X[y < 2], y[y < 2]
    kept = clone(model).set_params(checkpoint=Checkpoint(tmp_path / "fit", passes=1e-3, seconds=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(kept).set_params(max_time=seconds).fit(*two)
    assert same(kept.fit(*two), clone(model).fit(*two)) and os.listdir(tmp_path) == []


@pytest.mark.parametrize("seconds", [1e-4, 3e-3, 1e-2])
def test_a_search_for_a_step_that_time_cut_short_is_made_anew(seconds, tmp_path):
    model = SLNDClassifier(loss="logistic", max_passes=3, random_state=0)
    kept = clone(model).set_params(checkpoint=Checkpoint(tmp_path / "fit", **killed_fits.OFTEN))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(kept).set_params(max_time=seconds).fit(X, y)
    assert same(kept.fit(X, y), clone(model).fit(X, y))


def test_a_callback_that_says_enough_ends_the_fit(tmp_path):
    model = clone(GRADIENT).set_params(checkpoint=Checkpoint(tmp_path / "fit", **killed_fits.OFTEN),
                                       callback=lambda model: model.n_iter_ == 3)
    assert model.fit(X, y).n_iter_ == 3 and os.listdir(tmp_path) == []


# ---------------------------------------------------------------- refused

def identity_in(path):
    with open(path, "rb") as file:
        file.seek(len(files.MAGIC))
        return files.OwnUnpickler(file).load()


CHANGED = np.where(np.arange(X.size).reshape(X.shape) == 1234, X + 1e-9, X)
OTHERS = {
    "l2": (lambda model: model.set_params(l2=2e-3).fit(X, y), "l2 was 0.001 there and is 0.002 here"),
    "estimator": (lambda model: SmSVMClassifier(checkpoint=model.checkpoint).fit(X, y), "the estimator was"),
    "one number": (lambda model: model.fit(CHANGED, y), "the sum over X was"),
    "rows": (lambda model: model.fit(X[1:], y[1:]), r"the shape of X was \(400, 9\) there and is \(399, 9\)"),
    "dtype": (lambda model: model.fit(X.astype("f"), y), "the dtype of X was float64 there and is float32"),
    "CSR": (lambda model: model.fit(sp.csr_matrix(X), y), "how X is stored was dense there and is CSR"),
    "labels": (lambda model: model.fit(X, np.roll(y, 1)), "the sum over y was"),
    "words": (lambda model: model.fit(X, np.array(["a", "b", "c"])[y]), "the sum over y was"),
    "weights": (lambda model: model.fit(X, y, np.ones(400)), "the sum over sample_weight was none"),
    "class weights": (lambda model: model.set_params(class_weight="balanced").fit(X, y), "class_weight was None"),
}


@pytest.mark.parametrize("change, words", OTHERS.values(), ids=OTHERS)
def test_a_checkpoint_of_another_fit_is_refused(change, words, tmp_path):
    model = stopped(GRADIENT, tmp_path / "fit")
    before = (tmp_path / "fit").read_bytes()
    with pytest.raises(ValueError, match=f"is of another fit: .*{words}"):
        change(model)
    assert (tmp_path / "fit").read_bytes() == before and not hasattr(model, "coef_")


def test_what_does_not_change_the_result_may_change(tmp_path):
    model = stopped(GRADIENT, tmp_path / "fit")
    model.set_params(n_jobs=1, max_time=100.0, verbose=0, callback=lambda model: False)
    assert same(model.fit(np.asfortranarray(X), list(y)), clone(GRADIENT).fit(X, y))


def test_another_start_is_another_fit(tmp_path):
    model = clone(GRADIENT).fit(X, y).set_params(warm_start=True, max_passes=20, tol=1e-12,
                                                 checkpoint=Checkpoint(tmp_path / "fit", **killed_fits.OFTEN))
    model.set_params(callback=killed_fits.StopAt(2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(ValueError, match="the weights to start from"):
        model.set_params(callback=None).fit(X, y)        # its weights are those of the interrupt by now


def test_a_random_state_is_known_by_its_numbers(tmp_path):
    model = PegasosClassifier(max_passes=5)
    kept = stopped(clone(model).set_params(random_state=np.random.RandomState(4)), tmp_path / "fit").checkpoint
    model.set_params(checkpoint=kept)
    with pytest.raises(ValueError, match="random_state was"):
        clone(model).set_params(random_state=np.random.RandomState(5)).fit(X, y)
    again = clone(model).set_params(random_state=np.random.RandomState(4)).fit(X, y)
    assert same(again, PegasosClassifier(max_passes=5, random_state=np.random.RandomState(4)).fit(X, y))


LONG = np.linspace(1e-5, 1e-2, 2001)


@pytest.mark.parametrize("held", [
    np.array, pd.Series, list, lambda long: (1.0, [long]), lambda long: {"a": long}, sp.csr_matrix,
    lambda long: np.array([long, None], object), lambda long: SmSVMClassifierCV(l2s=long),
], ids=["array", "column", "list", "nested", "dict", "CSR", "objects", "estimator"])
def test_a_parameter_is_known_by_all_of_its_numbers(held):
    # the repr of an array of more than 1,000 numbers leaves out the middle: other weights had the same identity
    other = LONG.copy()
    other[1000] += 1e-12
    words = [in_words(held(long)) for long in (LONG, LONG.copy(), other)]
    assert words[0] == words[1] != words[2]
    assert in_words(np.array([1.0])) != in_words(np.array([[1.0]])) != in_words(np.array([[1.0]], "f"))
    assert in_words((1e-6, np.float64(0.1), "a")) == "(1e-06, 0.1, 'a')"


@pytest.mark.parametrize("harm", [lambda kept: kept[:-1], lambda kept: kept[:len(kept) // 2],
                                  lambda kept: kept[:2000] + b"\0" + kept[2001:], lambda kept: kept[:40]],
                         ids=["cut by a byte", "half", "another byte", "only its name"])
def test_a_damaged_file_is_refused(harm, tmp_path):
    model = stopped(GRADIENT, tmp_path / "fit")
    kept = (tmp_path / "fit").read_bytes()
    assert kept[2000] != 0
    (tmp_path / "fit").write_bytes(harm(kept))
    with pytest.raises(ValueError, match="cut short or damaged; remove it"):
        model.fit(X, y)


@pytest.mark.parametrize("content", [b"", b"weights of mine"])
def test_a_file_of_something_else_is_neither_read_nor_overwritten(content, tmp_path):
    (tmp_path / "fit").write_bytes(content)
    with pytest.raises(ValueError, match="not a checkpoint that this version of cmargin can read"):
        clone(GRADIENT).set_params(checkpoint=tmp_path / "fit").fit(X, y)
    assert (tmp_path / "fit").read_bytes() == content


def test_a_checkpoint_of_the_build_before_is_refused_by_the_name_of_its_version(tmp_path):
    # the numbers of a driver are bytes of its components: another build has others, and must not take them for its own
    model = stopped(GRADIENT, tmp_path / "fit")
    kept = (tmp_path / "fit").read_bytes().replace(files.MAGIC, b"%s%d\n" % (files.OF_ANY_FORMAT, files.FORMAT - 1), 1)
    kept = kept[:-files.TRAILER.size]
    kept += files.TRAILER.pack(len(kept), zlib.crc32(kept))
    (tmp_path / "fit").write_bytes(kept)
    with pytest.raises(ValueError, match=f"in format {files.FORMAT - 1}, and .* {files.FORMAT}; fin"):
        model.fit(X, y)
    assert (tmp_path / "fit").read_bytes() == kept


class Harm:
    def __reduce__(self):
        return os.mkdir, ("harm",)


@pytest.mark.parametrize("foreign", [Harm(), pickle.PickleBuffer, np.random.default_rng(1)])
def test_nothing_but_arrays_and_our_own_classes_is_loaded(foreign, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = files.MAGIC + pickle.dumps({"name": foreign})
    Path("fit").write_bytes(content + files.TRAILER.pack(len(content), zlib.crc32(content)))
    with pytest.raises(pickle.UnpicklingError, match="a checkpoint holds no"):
        clone(GRADIENT).set_params(checkpoint="fit").fit(X, y)
    assert not os.path.exists("harm")


@pytest.mark.parametrize("wrong", [3, "", b"fit", ["fit"], {"path": "fit"}])
def test_a_parameter_that_is_no_path(wrong):
    with pytest.raises(ValueError, match="'checkpoint' parameter of SmSVMClassifier must be a path"):
        SmSVMClassifier(checkpoint=wrong).fit(X, y)


@pytest.mark.parametrize("wrong, words", [({"seconds": -1.0}, "seconds must be at least 0"),
                                          ({"passes": 0}, "passes must be above 0"),
                                          ({"seconds": None}, "cannot both be None")])
def test_a_checkpoint_that_is_never_due_or_always(wrong, words):
    with pytest.raises(ValueError, match=words):
        Checkpoint("fit", **wrong)
    with pytest.raises(TypeError):
        Checkpoint(3)
    for path in ("", b"fit"):
        with pytest.raises(ValueError, match="path must be a str"):
            Checkpoint(path)


# ---------------------------------------------------------------- written

class FullDisk:
    """A disk that is full while it is asked to keep the ``those`` times."""

    def __init__(self, monkeypatch, those):
        self.calls, self.those, self.fsync = 0, those, os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, descriptor):
        self.calls += 1
        if self.calls in self.those:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.fsync(descriptor)


@pytest.mark.parametrize("model", MODELS, ids=lambda e: type(e).__name__)
def test_a_full_disk_costs_no_more_than_the_checkpoint(model, tmp_path, monkeypatch):
    disk = FullDisk(monkeypatch, range(1, 10**6))
    whole = clone(model).set_params(checkpoint=Checkpoint(tmp_path / "fit", **killed_fits.OFTEN))
    with pytest.warns(RuntimeWarning) as received:
        whole.fit(X, y)
    assert len(received) == 1
    assert "could not be written (No space left on device); there is none" in str(received[0].message)
    assert disk.calls > 1 and same(whole, clone(model).fit(X, y)) and os.listdir(tmp_path) == []


def test_the_last_checkpoint_outlives_a_full_disk(tmp_path, monkeypatch):
    FullDisk(monkeypatch, range(3, 10**6))               # two calls a file: itself, and its folder
    with pytest.warns(RuntimeWarning, match="the one written before stays"):
        model = stopped(GRADIENT, tmp_path / "fit", 6)
    assert os.listdir(tmp_path) == ["fit"]
    monkeypatch.undo()
    assert same(model.fit(X, y), clone(GRADIENT).fit(X, y))


@pytest.mark.parametrize("path", ["nowhere/fit", "file/fit"])
def test_a_folder_that_cannot_be_written_to_is_told_of_at_once(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    with pytest.raises(OSError, match=f"The checkpoint cannot be written .*: '{path}'"):
        clone(GRADIENT).set_params(checkpoint=path).fit(X, y)


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(OSError, match="The checkpoint must be a file, not a folder"):
        clone(GRADIENT).set_params(checkpoint=tmp_path).fit(X, y)


def test_writing_takes_a_twentieth_of_the_time_at_most(tmp_path, monkeypatch):
    now = iter(np.arange(0.0, 1000.0, 1.0))              # every check of the clock takes a second, so does writing
    monkeypatch.setattr(files, "perf_counter", lambda: next(now))
    checkpointer = Checkpointer(Checkpoint(tmp_path / "fit", seconds=5.0), {})
    due = []
    for reads in range(100):
        checkpointer.offer(reads, partial(due.append, reads))
    assert due[0] == 4 and set(np.diff(due)) == {20}


def test_a_call_with_a_time_limit_gets_on_however_slow_the_disk(tmp_path, monkeypatch):
    # writing took a second, 20 were waited for, and a fit of 19 at a time came no further
    now = iter(np.arange(0.0, 1000.0, 1.0))
    monkeypatch.setattr(files, "perf_counter", lambda: next(now))
    checkpointer, due = Checkpointer(Checkpoint(tmp_path / "fit", seconds=5.0), {}, max_time=30.0), []
    for reads in range(100):
        checkpointer.offer(reads, partial(due.append, reads))
    assert set(np.diff(due)) == {3}


def test_a_number_of_passes_is_kept_to(tmp_path):
    checkpointer, due = Checkpointer(Checkpoint(tmp_path / "fit", seconds=None, passes=3.0), {}), []
    for reads in range(10):
        checkpointer.offer(reads, partial(due.append, reads))
    assert due == [3, 6, 9]


@pytest.mark.parametrize("model", quick_estimators(), ids=lambda e: type(e).__name__)
def test_every_estimator_has_the_parameter_and_says_so(model):
    assert model.checkpoint is None and "checkpoint" in type(model).__init__.__code__.co_varnames
    assert "checkpoint" in type(model).__doc__ or "parameters, attributes and references" in type(model).__doc__
    kept = Checkpoint("fit", passes=2)
    assert clone(clone(model).set_params(checkpoint=kept)).checkpoint == kept


def test_nothing_is_written_without_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in MODELS:
            clone(model).fit(X, y)
    assert os.listdir(tmp_path) == []
