"""Names that were public, or that pickles hold, lead for one release to what has their place now."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import cmargin.data
import cmargin.data.files
from cmargin import SLNDClassifier
from cmargin.baselines import SGDQNClassifier


def test_homes_warn_and_are_data():
    homes = cmargin.homes
    from cmargin.homes import files

    with pytest.warns(FutureWarning, match="cmargin.homes.open_rows is cmargin.data.open_rows now"):
        assert homes.open_rows is cmargin.data.open_rows
    with pytest.warns(FutureWarning, match="open_files is cmargin.data.files.open_files now"):
        assert files.open_files is cmargin.data.files.open_files
    for module in (homes, files):
        with pytest.raises(AttributeError, match="has no attribute 'prices'"):
            _ = module.prices


def test_convert_warns_and_is_the_function_of_the_command():
    from cmargin import convert
    from cmargin.cli.convert import convert as moved

    with pytest.warns(FutureWarning, match="cmargin.convert.convert is cmargin.cli.convert.convert now"):
        assert convert.convert is moved
    with pytest.raises(AttributeError, match="has no attribute 'TEXT'"):
        _ = convert.TEXT


@pytest.mark.parametrize("model", [SLNDClassifier(loss="logistic", random_state=0), SGDQNClassifier(random_state=0)])
def test_pickles_that_name_the_old_modules_are_read(model, tmp_path):
    # A fitted SLND holds its inverse Hessian, SGD-QN its gains: objects of modules that were in another folder.
    X, y = load_iris(return_X_y=True)
    text = pickle.dumps(model.fit(X, y), protocol=0)
    assert b"cmargin.solvers.sgd." in text
    (tmp_path / "old.pickle").write_bytes(text.replace(b"cmargin.solvers.sgd.", b"cmargin.solvers.low_rank."))
    np.save(tmp_path / "X.npy", X)
    read = "import pickle, numpy; print(pickle.load(open('old.pickle', 'rb')).predict(numpy.load('X.npy')).tolist())"
    said = subprocess.run([sys.executable, "-c", read], cwd=tmp_path, env={"PYTHONPATH": ":".join(sys.path)},
                          capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(model.predict(X).tolist())
