"""Questions and sums of shards: what is packed comes out as it went in."""

import numpy as np
import pytest
from conftest import blobs

from cmargin.data import open_rows
from cmargin.data.moves import COMMIT_AND_MOVE, RESTART, SAME_LINE
from cmargin.data.shards.request import Request, add_up, answer_of, n_sums
from cmargin.data.source import SINGLE_BLOCK, TANGENTS

EVALUATE = {"move": SAME_LINE, "primal": False, "active": None, "direction": None, "step": 0.5, "line_width": 0.2,
            "width": 0.1, "curvature_floor": 0.05, "with_hessian": False}
DIRECTION = np.linspace(-0.3, 0.4, 6)
STEP = {**EVALUATE, "move": COMMIT_AND_MOVE, "direction": DIRECTION}
START = {**STEP, "move": RESTART, "primal": True}
QUESTIONS = [
    ("evaluate", {**START, "with_hessian": True}), ("evaluate", {**STEP, "with_hessian": SINGLE_BLOCK}),
    ("evaluate", {**STEP, "with_hessian": True, "active": np.array([0, 2, 5])}),
    ("evaluate", {**EVALUATE, "with_hessian": TANGENTS}), ("line", {"step": 0.7, "width": 0.3}),
    ("hessp", {"x": None, "width": 0.1, "curvature_floor": 0.0}),
    ("hessp", {"x": DIRECTION, "width": 0.1, "curvature_floor": 0.0}),
    ("objective", {"x": DIRECTION, "squares": True}), ("objective", {"x": DIRECTION, "squares": False})]


@pytest.mark.parametrize("kind, asked", QUESTIONS, ids=str)
def test_a_buffer_holds_what_is_asked(kind, asked):
    request = Request(5)
    request.write("evaluate", 1, -1, {**START, "direction": np.ones(6), "active": np.arange(3)})   # there before
    request.write(kind, 12, 7, asked)
    there = Request(5)
    there.buffer[:] = request.buffer
    found = there.read()
    assert there.kind == kind and found[:3] == (kind, 12, 7)
    for name, value in asked.items():
        np.testing.assert_array_equal(found[3][name], value, err_msg=name)


def test_a_call_asks_nothing_of_a_pass():
    request = Request(70)
    request.write("call")
    kind, key, gone, asked = request.read()
    assert (kind, key, gone) == ("call", -1, -1) and asked["direction"] is None and asked["active"] is None
    assert request.buffer.nbytes == 8 * (8 + 71) + 9


def test_sums_answer_as_the_rows_do():
    X, y = blobs(n=90, d=5, k=2)
    both = [open_rows(X).row_pass(np.where(y == 0, 1.0, -1.0), intercept=True, n_threads=1) for _ in range(2)]
    both[1].block = None                                  # the room for blocks of a pass over shards
    for kind, asked in QUESTIONS:
        out = np.zeros(n_sums(kind, asked, 6))
        add_up(kind, asked, both[1], out)
        found = answer_of(kind, asked, out, both[1])
        if kind == "evaluate":
            if asked["move"] == RESTART:
                both[0].start(asked["primal"])
            both[0].set_active(asked["active"])
            own = both[0].evaluate(*(asked[name] for name in ("direction", "step", "line_width", "width",
                                                              "curvature_floor", "with_hessian", "move")))
            if own[2] is not None:
                own = *own[:2], np.triu(own[2])
        else:
            method = {"line": "line", "hessp": "hessp", "objective": "objective"}[kind]
            own = getattr(both[0], method)(*asked.values())
        for mine, its in zip(found, own, strict=True):
            np.testing.assert_array_equal(mine, its, err_msg=kind)


@pytest.mark.parametrize("move, moved", [
    (SAME_LINE, False), (COMMIT_AND_MOVE, False), (RESTART, True), (SAME_LINE, True)])
def test_a_move_that_the_rows_cannot_make_is_refused(move, moved):
    # whether the last step was taken was read out of a direction that was there or not
    rows = open_rows(np.eye(5)).row_pass(np.ones(5), intercept=True, n_threads=1)
    if moved:
        rows.evaluate(DIRECTION, 1.0, 0.2, 0.1, 0.0, False, RESTART)
    with pytest.raises(ValueError, match="the move of an evaluation"):
        rows.evaluate(DIRECTION, 1.0, 0.2, 0.1, 0.0, False, move)
