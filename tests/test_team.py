"""Threads that sleep between two pieces of work: every item once, whoever does it, and after a fork too."""

import os
import threading

import numpy as np
import pytest
from conftest import blobs

from cmargin._core.small._team import Team
from cmargin.homes.files import RowFiles
from cmargin.homes.files.formats import open_one
from cmargin.homes.files.home import FileHome


def works(team):
    return (team.run(5, 1) == 0).all()


needed = pytest.mark.skipif(not works(Team(2)), reason="built without such threads")


@needed
@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_every_item_is_done_once_in_every_round(n_threads):
    team, seen = Team(n_threads), set()
    for n in (1, 2, 7, 1000, 0, 3) * 50:
        who = team.run(n, n_threads)
        assert ((who >= 0) & (who < n_threads)).all()
        seen |= set(who.tolist())
    assert 0 in seen
    assert (team.run(300, 1) == 0).all()                                   # nobody joins who was not asked


@needed
def test_teams_of_several_python_threads():
    found = []

    def work():
        team = Team(3)
        found.append(all((team.run(64, 3) >= 0).all() for _ in range(200)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


@needed
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_works_alone_and_lets_go():
    team = Team(3)
    team.run(10, 3)
    child = os.fork()
    if child == 0:
        fine = (team.run(100, 3) == 0).all()
        del team
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (team.run(10, 3) >= 0).all()


def test_sums_over_files_are_the_same_bits(tmp_path):
    X, y = blobs(n=5000, d=12, k=2)
    np.save(tmp_path / "X.npy", X)
    found = []
    for n_threads in (1, 2, 5):
        rows = FileHome(RowFiles([open_one(str(tmp_path / "X.npy"))]), chunk=1 << 16).row_pass(
            np.where(y == 1, 1.0, -1.0), intercept=True, n_threads=n_threads)
        rows.start()
        told = rows.look(np.linspace(-0.2, 0.3, 13), 1.0, 0.5, 0.3, 0.0)
        product = rows.hessian_product(None, 0.3)[0]
        found.append([*told, product, rows.along(0.5, 0.3), rows.evaluate(np.ones(13), True)[1]])
    for one in found[1:]:
        for here, there in zip(found[0], one, strict=True):
            np.testing.assert_array_equal(here, there)
