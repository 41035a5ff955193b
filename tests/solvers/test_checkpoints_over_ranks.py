"""Checkpoints of fits over ranks: rank 0's file, and one of every rank that has what is of its rows."""

import errno
import os

import killed_fits
import numpy as np
import pytest
import scipy.sparse as sp
from killed_fits import same
from ranks_in_threads import on_ranks
from rare_columns import rows_with_rare_columns
from sklearn.base import clone

from cmargin import Checkpoint, MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.data.shards.rank_files import RankFile

X, y = killed_fits.blobs(900, 7, 3)
LARGE = killed_fits.data_of("large", None)
MODELS = {
    "smsvm": SmSVMClassifier(l1=1e-3),
    "products": SmSVMClassifier(linear_solver="cg", loss="logistic"),
    "pursuit": MarginPursuitClassifier(scale=0.3, tol=1e-8, trace=False),
    "gradient": MarginPursuitClassifier(solver="gd", max_passes=9, tol=1e-3),
    "slnd": SLNDClassifier(max_passes=6, random_state=2),
    "refreshed": SLNDClassifier(max_passes=6, step_size=1.0, hessian_refresh=2, random_state=2),
}


def over_ranks(model, size, data=(X, y), **parameters):
    rows, labels = data

    def work(comm):
        return clone(model).set_params(**parameters).fit(rows[comm.rank::size], labels[comm.rank::size], comm=comm)

    return on_ranks(size, work)[0]


def stopped(model, size, folder, n=3, data=(X, y)):
    """Fit until a Ctrl-C on rank 0; what the next call is given."""
    kept = {"checkpoint": Checkpoint(folder / "fit", **killed_fits.OFTEN)}
    found = over_ranks(model, size, data, callback=killed_fits.StopAt(n), **kept)
    assert all(isinstance(one, KeyboardInterrupt) for one in found), found
    assert {"fit", *(f"fit.rank{rank}.1" for rank in range(size))} <= set(os.listdir(folder))
    return {"callback": lambda model: False, **kept}


@pytest.mark.parametrize("size, n, sparse", [(2, 3, False), (3, 4, True), (1, 5, True)])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_an_interrupted_fit_ends_with_the_same_bits(model, size, n, sparse, tmp_path):
    data = sp.csr_matrix(np.where(np.abs(X) > 0.6, X, 0.0)) if sparse else X, y
    alone = over_ranks(model, size, data, callback=lambda model: False)
    again = over_ranks(model, size, data, **stopped(model, size, tmp_path, n, data))
    assert same(alone[0], again[0]) and len({model.coef_.tobytes() for model in again}) == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("n", [2, 5])
def test_a_subset_is_gathered_anew(n, tmp_path):
    model = SmSVMClassifier(random_state=3)
    alone = over_ranks(model, 2, LARGE)
    assert same(alone[0], over_ranks(model, 2, LARGE, **stopped(model, 2, tmp_path, n, LARGE))[1])


def test_the_rows_near_the_hinge_are_the_same_again(tmp_path):
    data, seen = rows_with_rare_columns(40_000, 0), []
    model = SmSVMClassifier(l2=1e-3, random_state=0)
    alone = over_ranks(model, 2, data, callback=lambda model: seen.append(model.history_["smoothing"][-1]))
    linearised = [n for n, width in enumerate(seen, 1) if width == 1e-4]  # evaluations with straight lines
    assert len(linearised) > 1
    for n in linearised:
        again = over_ranks(model, 2, data, **stopped(model, 2, tmp_path, n, data))
        assert same(alone[0], again[1])


@pytest.mark.parametrize("size, data, words", [
    (2, (np.where(np.arange(900)[:, None] == 3, X + 1e-9, X), y), "the sum over X of rank 1 was"),
    (2, (X, np.where(np.arange(900) == 2, (y + 1) % 3, y)), "the sum over y of rank 0 was"),
    (3, (X, y), "the number of ranks was 2 there and is 3 here")], ids=["rows", "labels", "ranks"])
def test_a_checkpoint_of_other_ranks_is_refused_on_all(size, data, words, tmp_path):
    again = stopped(MODELS["pursuit"], 2, tmp_path)
    for error in over_ranks(MODELS["pursuit"], size, data, **again):
        assert isinstance(error, ValueError) and "is of another fit: " in str(error) and words in str(error)


def test_files_that_do_not_belong_together_are_refused_on_all(tmp_path):
    again = stopped(MODELS["smsvm"], 2, tmp_path)
    for slot in range(2):
        os.replace(tmp_path / f"fit.rank1.{1 - slot}", tmp_path / f"fit.rank1.{slot}.moved")
    for slot in range(2):
        os.replace(tmp_path / f"fit.rank1.{slot}.moved", tmp_path / f"fit.rank1.{slot}")
    for error in over_ranks(MODELS["smsvm"], 2, **again):
        assert isinstance(error, ValueError) and "is of another fit: the checkpoint was" in str(error)
        assert "on rank 1" in str(error)


def test_a_file_that_is_missing_is_told_of_on_all(tmp_path):
    again = stopped(MODELS["smsvm"], 2, tmp_path)
    for slot in range(2):
        os.remove(tmp_path / f"fit.rank1.{slot}")
    for error in over_ranks(MODELS["smsvm"], 2, **again):
        assert "No such file" in str(error) and "fit.rank1." in str(error)


def test_a_full_disk_of_one_rank_costs_no_more_than_the_checkpoint(tmp_path, monkeypatch):
    write, alone = RankFile.write, over_ranks(MODELS["smsvm"], 2)
    kept = Checkpoint(tmp_path / "fit", **killed_fits.OFTEN)

    def full(self, *of):
        return (errno.ENOSPC, "No space left on device (on rank 1)") if self.rank == 1 else write(self, *of)

    monkeypatch.setattr(RankFile, "write", full)
    with pytest.warns(RuntimeWarning, match=r"could not be written \(No space left on device \(on rank 1\)\)"):
        whole = over_ranks(MODELS["smsvm"], 2, checkpoint=kept)
    assert same(alone[0], whole[0]) and os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_to_is_told_of_on_all(tmp_path):
    for error in over_ranks(MODELS["gradient"], 2, checkpoint=tmp_path / "nowhere" / "fit"):
        assert isinstance(error, (OSError, RuntimeError)) and "The checkpoint cannot be written" in str(error)
