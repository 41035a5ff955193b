"""From where to where rows move for an evaluation, said and not guessed; requests for one, put to a row pass."""

SAME_LINE, COMMIT_AND_MOVE, RESTART = range(3)             # as `move_kind` of the compiled passes has it


def move_of(direction, begun):
    """The move of an evaluation asked for by its direction alone, or None; ``begun``: one was made since `start`."""
    if direction is None:
        return SAME_LINE
    return COMMIT_AND_MOVE if begun else RESTART


def evaluate_as_asked(rows, move, primal, active, **asked):
    """What `RowPass.evaluate` answers to a request of a `Driver`."""
    if move == RESTART:
        rows.start(primal)
    rows.set_active(active)
    return rows.evaluate(move=move, **asked)
