"""``cmargin fit --method smsvm-regressor``, ``predict``, ``evaluate``: targets of every format, quantiles, refusals."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import mean_pinball_loss, r2_score
from sklearn.preprocessing import StandardScaler
from trees import csv_text, failed

from cmargin import SmSVMRegressor
from cmargin import load as load_model
from cmargin.__main__ import main
from cmargin.cli.convert import convert
from cmargin.cli.model import load

RNG = np.random.default_rng(59)
X = RNG.standard_normal((150, 4)) * (1, 10, 0.1, 1)
Y = X @ (1, -0.2, 3, 0) + 0.3 * RNG.standard_t(3, 150) + 2
METHOD = ("--method", "smsvm-regressor")


def table(targets=Y):
    lines = ["a,b,c,d,price", *(",".join(map(repr, [*row, t])) for row, t in zip(X.tolist(), targets.tolist(),
                                                                                 strict=True))]
    return "\n".join(lines) + "\n"


def write_csv(folder):
    (folder / "d.csv").write_text(table())
    return ["d.csv"]


def write_parquet(folder):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({**{name: X[:, j] for j, name in enumerate("abcd")}, "price": Y}),
                        folder / "d.parquet")
    return ["d.parquet"]


def write_arff(folder):
    pytest.importorskip("arff")
    head = "@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in "abcdp") + "@data\n"
    (folder / "d.arff").write_text(head + table().partition("\n")[2])
    return ["d.arff"]


def write_svm(folder):
    dump_svmlight_file(X, Y, str(folder / "d.svm"), zero_based=False)
    return ["d.svm"]


def write_npz(folder):
    np.savez(folder / "d.npz", X=X, y=Y)
    return ["d.npz"]


def write_npy(folder):
    np.save(folder / "d.npy", X)
    (folder / "targets.txt").write_text("\n".join(map(repr, Y.tolist())))
    return ["d.npy", "--labels", "targets.txt"]


def write_folder(folder):
    dump_svmlight_file(X, Y, str(folder / "text"), zero_based=False)
    convert(str(folder / "text"), str(folder / "d"), dtype=np.float64)
    return ["d"]


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("write", [write_csv, write_parquet, write_arff, write_svm, write_npz, write_npy, write_folder])
def test_targets_of_every_format_are_fitted_judged_and_predicted(there, capsys, write):
    data = write(there)
    assert main(["fit", *data, *METHOD, "--set", "l2=1e-3", "--scale", "none", "--model", "m"]) == 0
    said = capsys.readouterr().out
    expected = SmSVMRegressor(l2=1e-3).fit(X, Y)
    assert "1 target: " in said and f"R2 {expected.score(X, Y):.4f}" in said and "certified to" in said
    assert load("m").classifier.coef_ == pytest.approx(expected.coef_, rel=1e-3, abs=1e-4)
    assert main(["predict", *data, "--model", "m"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [*map(float, lines)] == pytest.approx(load("m").classifier.predict(X), rel=1e-9, abs=1e-9)
    assert main(["evaluate", *data, "--model", "m", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    one, predicted = told["targets"][0], np.array([*map(float, lines)])
    assert one["R2"] == pytest.approx(r2_score(Y, predicted))
    assert one["mean absolute error"] == pytest.approx(np.abs(Y - predicted).mean(), rel=1e-6)
    assert one["root mean square error"] == pytest.approx(np.sqrt(np.mean((Y - predicted)**2)), rel=1e-6)
    assert told["residuals"]["quantiles"]["0.25"] == pytest.approx(np.quantile(Y - predicted, 0.25), rel=1e-6)


def test_whole_numbers_are_targets_too_and_columns_are_scaled(there, capsys):
    (there / "d.csv").write_text(table(np.rint(Y)))
    assert main(["fit", "d.csv", *METHOD, "--model", "m"]) == 0
    assert "classes" not in capsys.readouterr().err
    expected = SmSVMRegressor().fit(StandardScaler().fit_transform(X), np.rint(Y))
    assert load_model("m").predict(X) == pytest.approx(expected.predict(StandardScaler().fit_transform(X)), rel=1e-9)


def test_several_quantiles_have_a_column_each(there, capsys):
    write_csv(there)
    assert main(["fit", "d.csv", *METHOD, "--set", "loss=quantile", "--set", "quantile=[0.1,0.9]", "--model", "m"]) == 0
    assert "2 quantiles" in capsys.readouterr().out
    assert main(["predict", "d.csv", "--model", "m"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    found = np.array([[*map(float, line.split(","))] for line in lines])
    assert head == "0.1,0.9" and found.shape == (150, 2)
    assert main(["evaluate", "d.csv", "--model", "m", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["targets"]
    for k, (q, one) in enumerate(zip((0.1, 0.9), told, strict=True)):
        assert one["quantile"] == str(q) and one["targets at or below"] == pytest.approx(q, abs=0.03)
        assert one["pinball loss"] == pytest.approx(mean_pinball_loss(Y, found[:, k], alpha=q))
    assert main(["evaluate", "d.csv", "--model", "m"]) == 0
    assert "quantile  pinball loss" in capsys.readouterr().out


def test_several_targets_of_an_archive(there, capsys):
    np.savez(there / "d.npz", X=sp.csr_matrix(X).toarray(), y=np.column_stack([Y, -2 * Y, X[:, 0]]))
    assert main(["fit", "d.npz", *METHOD, "--model", "m"]) == 0
    assert "3 targets" in capsys.readouterr().out
    assert main(["predict", "d.npz", "--model", "m", "--out", "p.npy"]) == 0
    assert np.load("p.npy").shape == (150, 3)
    for how in ("text", "html"):
        assert main(["evaluate", "d.npz", "--model", "m", "--format", how]) == 0
        assert "root mean square error" in capsys.readouterr().out
    np.savez(there / "one.npz", X=X, y=Y)
    assert "one.npz has 1 target a row; the model predicts 3" in failed(capsys, "evaluate", "one.npz", "--model", "m")


def test_rows_without_targets_are_predicted(there, capsys):
    write_csv(there)
    main(["fit", "d.csv", *METHOD, "--quiet", "--model", "m"])
    (there / "new.csv").write_text("d,c,b,a\n1,2,3,4\n")
    assert main(["predict", "new.csv", "--model", "m"]) == 0
    assert float(capsys.readouterr().out) == pytest.approx(load_model("m").predict([[4.0, 3.0, 2.0, 1.0]])[0])


def test_texts_given_to_a_regression_and_numbers_to_a_classifier_are_refused(there, capsys):
    (there / "trees.csv").write_text(csv_text())
    said = failed(capsys, "fit", "trees.csv", *METHOD, "--model", "m")
    assert "trees.csv: what is taken for targets holds the text" in said and "--label names" in said
    write_csv(there)
    said = failed(capsys, "fit", "d.csv", "--method", "smsvm", "--model", "m")
    assert "not classes" in said and "--method smsvm-regressor fits numbers" in said
    main(["fit", "d.csv", *METHOD, "--quiet", "--model", "m"])
    (there / "wrong.csv").write_text(table().replace(repr(Y.tolist()[1]), "oak"))
    assert "holds the text 'oak'" in failed(capsys, "evaluate", "wrong.csv", "--model", "m")


@pytest.mark.parametrize("cell, words", [("", "row 2: the target is empty, NaN or infinite (1 such rows)"),
                                         ("nan", "row 2: the target is"), ("inf", "row 2: the target is")])
def test_targets_that_are_missing_or_infinite_are_refused(there, capsys, cell, words):
    (there / "d.csv").write_text(table().replace(repr(Y.tolist()[1]), cell))
    assert words in failed(capsys, "fit", "d.csv", *METHOD, "--model", "m")


def test_what_is_of_classes_alone_is_refused(there, capsys):
    write_csv(there)
    assert "--top is for classes" in failed(capsys, "fit", "d.csv", *METHOD, "--top", 2, "--model", "m", status=2)
    main(["fit", "d.csv", *METHOD, "--quiet", "--model", "m"])
    for more in (["--what", "scores"], ["--what", "probabilities"], ["--top", 2]):
        assert f"{more[0]}" in failed(capsys, "predict", "d.csv", "--model", "m", *more, status=2)
    assert "--top is for classes" in failed(capsys, "evaluate", "d.csv", "--model", "m", "--top", 2, status=2)
    assert "quantile" in failed(capsys, "fit", "d.csv", *METHOD, "--set", "quantile=2", "--model", "m", status=2)


def test_a_plan_is_told(there, capsys):
    write_csv(there)
    assert main(["explain", "d.csv", *METHOD]) == 0
    assert "1 target, loss 'epsilon_insensitive'" in capsys.readouterr().out
    assert main(["explain", "--rows", "100000", "--columns", "30", *METHOD, "--set", "loss=quantile", "--set",
                 "quantile=[0.1,0.9]"]) == 0
    assert "2 targets, loss 'quantile'" in capsys.readouterr().out


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_targets_whose_squares_overflow_are_reported(there, capsys):
    (there / "d.csv").write_text(table(1e300 * Y))
    assert main(["fit", "d.csv", *METHOD, "--model", "m"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "d.csv", "--model", "m", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["targets"][0]
    assert 1 <= told["root mean square error"] / told["mean absolute error"] < 10 and told["R2"] is None
    (there / "larger.csv").write_text(table(1e307 * Y))
    assert main(["evaluate", "larger.csv", "--model", "m", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"][0]["mean absolute error"] is None


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_column_of_targets_that_is_not_there_is_refused(there, capsys, command):
    write_csv(there)
    main(["fit", "d.csv", *METHOD, "--quiet", "--model", "m"])
    argv = command, "d.csv", "--label", "cost", "--model", "m"
    assert "d.csv has no column 'cost'; it has a, b" in failed(capsys, *argv)


@pytest.mark.parametrize("attribute", ["scale_", "mean_"])
def test_models_with_an_altered_scaler_are_refused(there, capsys, attribute):
    write_csv(there)
    main(["fit", "d.csv", *METHOD, "--quiet", "--model", "m"])
    altered = load("m")
    setattr(altered.scaler, attribute, "x")
    altered.save("m")
    assert "m is no model file of cmargin, or was altered" in failed(capsys, "predict", "d.csv", "--model", "m")
