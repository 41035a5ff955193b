"""Memory of arrays that are gone is that of the next ones, and never of any that is still seen."""

import gc
import pickle

import numpy as np
from ranks_in_threads import OneProblem
from sklearn.datasets import load_breast_cancer

from cmargin.homes import open_rows
from cmargin.homes.dask.tasks import Labelled, Round, turn
from cmargin.homes.places import HESSIAN, LOOK, RESTART
from cmargin.homes.room import MOST, ROUNDED, Room
from cmargin.homes.row_pass import MemoryRowPass


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_once_nobody_sees_it():
    room = Room()
    first, second = room.array((2, 50)), room.array((2, 50))
    assert first.shape == (2, 50) and first.dtype == float and first.flags.writeable
    places = {address(first), address(second)}
    assert len(places) == 2
    row = first[1]
    del first
    assert address(room.array((100,))) not in places            # a row of it is still there
    del row, second
    third, fourth = room.array((2, 50)), room.array((4, 25))
    assert {address(third), address(fourth)} == places
    assert address(room.array((2, 51))) not in places


def test_large_arrays_are_of_their_size():
    room = Room()
    for size in (0, 1, ROUNDED, ROUNDED + 1, 4 * ROUNDED, 4 * ROUNDED + 1):
        array = room.array((size,))
        array[:] = 1
        assert array.shape == (size,) and array.sum() == size


def test_memory_may_outlive_its_room_which_travels_without_it():
    room = Room()
    array = room.array((3,))
    array[:] = 7
    other = pickle.loads(pickle.dumps(room))
    del room
    assert not other.free and (array == 7).all()
    copy = pickle.loads(pickle.dumps(array))
    del array
    assert (copy == 7).all()


def test_a_pass_that_goes_on_in_used_memory_has_the_same_sums():
    X, y = load_breast_cancer(return_X_y=True)
    rows, room = open_rows(X / X.max(axis=0)).rows, Room()
    code = np.where(y == 1, 1.0, -1.0)
    first = MemoryRowPass(rows, code, intercept=True, n_threads=1)
    direction = np.full(first.n_columns, 0.1)
    first.look(direction, 1.0, 0.5, 0.5, 0.0)
    state, seen = first.state(), []
    for step in np.linspace(1, 0.3, 8):
        plain, other = (MemoryRowPass.from_state(rows, state, 1, room=place) for place in (None, room.array))
        for mine, theirs in zip(other.look(direction, step, 0.5, 0.4, 0.0), plain.look(direction, step, 0.5, 0.4, 0.0),
                                strict=True):
            np.testing.assert_array_equal(mine, theirs)
        state = other.state()
        seen.append(address(state.kept["per_row"]))
        del other
    assert len(set(seen)) <= 4                   # before and after, and their dual variables


def test_no_more_waits_than_is_wanted_soon():
    room = Room()
    arrays = [room.array((10,)) for _ in range(2 * MOST)]
    assert room.nbytes == 0
    del arrays
    assert room.nbytes == MOST * 80


def test_tasks_use_the_memory_of_the_tasks_before_without_the_collector():
    # what made a partition's passes held the partition, and its memory, until the collector came
    X, y = load_breast_cancer(return_X_y=True)
    labelled = Labelled(OneProblem(np.where(y == 1, 1.0, -1.0)), np.ones(len(y)), 0, 0)
    before = turn(X, labelled, None, Round([("open_pass", (1, 0, True))], set(), 1))
    seen = {address(before.states[1].kept["per_row"])}
    gc.disable()
    try:
        for i in range(8):
            asked = {"key": 1, "flags": HESSIAN | RESTART * (i == 0), "step": 1.0, "line_width": 0.5, "width": 0.5,
                     "vector": np.full(31, 1e-4)}
            before = turn(X, labelled, before, Round([("asked", (LOOK, asked))], set(), 1))
            assert isinstance(before.answers[0], np.ndarray)
            seen.add(address(before.states[1].kept["per_row"]))
    finally:
        gc.enable()
    assert len(seen) <= 4 and labelled.room.nbytes < 3 * 16 * len(y)
