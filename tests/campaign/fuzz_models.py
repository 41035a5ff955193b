"""Altered model files: other JSON, other arrays. They are refused in a sentence, or what they hold predicts."""

import copy
import json
from functools import partial

import numpy as np

from .fuzz_input import Draw

ODD = (None, True, 0, -1, 10**30, 3.5, "", "nan", "cmargin", [], {}, [1, 2], {"array": "0"}, {"array": "1"},
       {"list": [1]}, {"dict": [[1, 2]]}, {"csr": ["0", "1", "2", [3, 3]]}, {"texts": [[2], ["a", "b"]]},
       {"dtype": "O"}, {"tuple": []}, {"estimator": {"class": "SmSVMClassifier", "parameters": {}, "fitted": {}}})
CHANGES = (lambda a: a[:len(a) // 2] if a.ndim else a, lambda a: a.astype("S5"), np.ravel,
           lambda a: np.full(a.shape, 7).astype(a.dtype), lambda a: a * np.nan if a.dtype.kind == "f" else a,
           lambda a: np.zeros((0, *a.shape[1:]), a.dtype), lambda a: a[None])
_files = {}


def load(draw, models, rows):
    """Loading a file of one of ``models`` of which something has been altered, and predicting ``rows`` by it."""
    model = draw.pick(models)
    name = type(model).__name__, len(model.classes_)
    if name not in _files:
        model.save("whole.cmargin")
        with np.load("whole.cmargin") as archive:
            _files[name] = {key: archive[key] for key in archive.files}
    arrays = dict(_files[name])
    head = json.loads(arrays.pop("cmargin").tobytes())
    for _ in range(1 + draw.below(2)):
        if draw.below(5) < 3 or not arrays:
            head = altered(draw, head)
        else:
            key = draw.pick(sorted(arrays))
            arrays[key] = draw.pick(CHANGES)(arrays[key])
    return partial(loaded, json.dumps(head).encode(), arrays, rows)


def altered(draw: Draw, tree):
    """A tree of JSON with something else in place of one of its nodes."""
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    walk(tree)
    if not places:
        return copy.deepcopy(draw.pick(ODD))
    node, key = draw.pick(places)
    node[key] = copy.deepcopy(draw.pick(ODD))
    return tree


def loaded(head, arrays, rows):
    """What the model of the file predicts: a file that is loaded must predict."""
    from cmargin import load

    with open("altered.cmargin", "wb") as file:
        np.savez(file, cmargin=np.frombuffer(head, np.uint8), **arrays)
    model = load("altered.cmargin")
    try:
        return model.predict(rows)
    except (ValueError, TypeError) as error:
        raise AssertionError(f"the file is loaded, and does not predict: {error}") from error
