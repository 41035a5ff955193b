"""LIBLINEAR's text models, both ways: the order of labels, the bias, and files that are none."""

import numpy as np
import pytest
from conftest import blobs

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.export import load_liblinear, save_liblinear

X, Y = blobs(n=300, d=5, k=3)
NEW = np.random.default_rng(11).normal(size=(200, 5)) * 2

# what LIBLINEAR 2.50 wrote for the rows below (but for a blank at the end of a line), and its decision values for them
ROWS = np.array([[1, 0.5], [2, 0.25], [-1, 0.5], [-2, 1]])
WRITTEN = {
    "larger label first, with bias 1": ("""solver_type L2R_LR
nr_class 2
label 3 1
nr_feature 2
bias 1
w
1.0012206548326179
-0.078147262454752134
0.015870910036694774
""", [3, 3, 1, 1], [0.9780179336419366, 1.9987754040882424, -1.0244233760232992, -2.064717662083293]),
    "smaller label first, no bias": ("""solver_type L2R_L1LOSS_SVC_DUAL
nr_class 2
label 1 3
nr_feature 2
bias -1
w
1.0090823680000001
0.018164736000000042
""", [1, 1, 3, 3], [-1.0181647360000001, -2.02270592, 1.0, 2.0]),
    "signs, bias 2": ("""solver_type L2R_L2LOSS_SVC
nr_class 2
label 1 -1
nr_feature 2
bias 2
w
-0.80072674387916509
0.046724872404375298
-0.012330871823488417
""", [-1, -1, 1, 1], [-0.8020260513239542, -1.6144340133042132, 0.799427436434376, 1.6235166165157286]),
    "three, not in order": ("""solver_type L2R_L2LOSS_SVC_DUAL
nr_class 3
label 2 0 1
nr_feature 2
bias -1
w
0.10740163617348597 0.38230041808157794 -0.80152164265918069
-0.50831948912935399 -0.88461940505550352 -0.0019020533239758955
""", [0, 0, 1, 1], [[-0.060009284446173816, -0.8024726693211687, -0.14675810839119102],
                    [0.54344598489928, -1.6035187986493553, 0.08772340006463344],
                    [-0.8246101206093297, 0.8005706159971927, -0.36156138073816296],
                    [-1.6492202412186594, 1.6011412319943854, -0.7231227614763259]]),
}


def in_file(text, folder):
    path = folder / "a.model"
    path.write_text(text.replace("\n", " \n"))
    return path


@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_liblinear_predict_as_it_does(name, tmp_path):
    text, labels, scores = WRITTEN[name]
    model = load_liblinear(in_file(text, tmp_path))
    np.testing.assert_array_equal(model.predict(ROWS), labels)
    np.testing.assert_allclose(model.decision_function(ROWS), scores, rtol=1e-14)
    assert (model.classes_ == np.sort(model.classes_)).all() and model.coef_.dtype == np.float64


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_read_is_written_again(name, tmp_path):
    model = load_liblinear(in_file(WRITTEN[name][0], tmp_path))
    save_liblinear(model, tmp_path / "b.model")
    again = load_liblinear(tmp_path / "b.model")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    assert again.loss == model.loss and [path.name for path in tmp_path.glob("b*")] == ["b.model"]
    text = (tmp_path / "b.model").read_text().splitlines()
    if name == "smaller label first, no bias":        # as LIBLINEAR writes signs: the label of positive scores first
        assert text[2] == "label 3 1" and text[6] == "-1.009082368"
    assert text[4] == ("bias 1" if model.intercept_.any() else "bias -1")


@pytest.mark.parametrize("make, solver", [
    (SmSVMClassifier, "L2R_L1LOSS_SVC_DUAL"), (lambda: SmSVMClassifier(loss="squared_hinge"), "L2R_L2LOSS_SVC"),
    (lambda: SmSVMClassifier(loss="logistic", fit_intercept=False), "L2R_LR"),
    (lambda: SLNDClassifier(random_state=3), None), (lambda: SLNDClassifier(loss="logistic", random_state=3), "L2R_LR"),
    (MarginPursuitClassifier, "L2R_L1LOSS_SVC_DUAL")])
@pytest.mark.parametrize("labels", [Y, np.where(Y == 1, -1, 1), np.where(Y == 1, 7.0, 2.0), Y > 0], ids=str)
def test_our_models_come_back(make, solver, labels, dtype, tmp_path):
    model = make().fit(X.astype(dtype), labels)
    save_liblinear(model, tmp_path / "a.model")
    back = load_liblinear(tmp_path / "a.model")
    np.testing.assert_array_equal(back.predict(NEW), model.predict(NEW.astype(dtype)))
    if not hasattr(model, "class_prior_"):            # whose correction is in the intercept
        np.testing.assert_array_equal(back.coef_, model.coef_)
        np.testing.assert_array_equal(back.intercept_, model.intercept_)
    multinomial = solver is None and len(model.classes_) > 2         # a softmax is not what predict -b 1 makes of it
    assert (tmp_path / "a.model").read_text().split()[1] == (
        solver or ("L2R_L1LOSS_SVC_DUAL" if multinomial else "L2R_LR"))


def test_a_model_that_was_read_is_trained_on(tmp_path):
    model = SmSVMClassifier(l2=1e-2).fit(X, Y)
    save_liblinear(model, tmp_path / "a.model")
    back = load_liblinear(tmp_path / "a.model").set_params(l2=1e-2, warm_start=True).fit(X, Y)
    assert back.n_passes_ < model.n_passes_ and (back.duality_gap_ <= back.tol).all()
    np.testing.assert_array_equal(back.to_sklearn().predict(NEW), back.predict(NEW))


def test_what_liblinear_cannot_name_is_refused(tmp_path):
    path = tmp_path / "a.model"
    names = np.array(["ash", "birch", "elm"])[Y]
    for labels, said in ((names, "integers of 32 bits.*LabelEncoder"), (Y * 2**31, "integers of 32 bits"),
                         (np.stack([Y == 0, Y > 1], axis=1).astype(int), "label indicator")):
        with pytest.raises(ValueError, match=said):
            save_liblinear(SmSVMClassifier().fit(X, labels), path)
    drawn = SLNDClassifier(loss="squared", negatives_per_positive=1, random_state=3).fit(X, Y)
    with pytest.raises(ValueError, match="no linear function"):
        save_liblinear(drawn, path)
    with pytest.raises(ValueError, match="not fitted"):
        save_liblinear(SmSVMClassifier(), path)
    assert not list(tmp_path.iterdir())


GOOD = "solver_type L2R_LR\nnr_class 3\nlabel 0 1 2\nnr_feature 2\nbias -1\nw\n1 2 3\n4 5 6\n"


@pytest.mark.parametrize("old, new, line, said", [
    (GOOD, "", 1, "the file ends where 'w' should be"),
    (GOOD, "\x00\x01\xff", 1, "expected one of solver_type, nr_class, label, nr_feature, bias or w"),
    ("L2R_LR", "L2R_L2LOSS_SVR", 1, "'L2R_L2LOSS_SVR' is not one of"), ("L2R_LR", "MCSVM_CS", 1, "'MCSVM_CS'"),
    ("nr_class 3", "nr_class three", 2, "a number of 1 to"), ("nr_class 3", "nr_class 2", 6, "2 with 3 labels"),
    ("label 0 1 2", "label 0 1 x", 3, "labels are integers"), ("label 0 1 2", "label 0 1 1", 3, "named twice"),
    ("label 0 1 2", "label 0.5 1 2", 3, "labels are integers"), ("label 0 1 2\n", "", 5, "no label before"),
    ("nr_feature 2", "nr_feature -2", 4, "1 to"),
    ("nr_feature 2", f"nr_feature {10**30}", 4, "1 to 2147483647"),
    ("nr_feature 2", "nr_feature " + 5000 * "9", 4, "1 to 2147483647"), ("bias -1", "bias", 5, "1 finite number,"),
    ("bias -1", "bias nan", 5, "1 finite number,"), ("bias -1", "bias 1", 9, "ends where line 3 of 3"),
    ("bias -1", "bias -1\nbias -1", 6, "expected one of w|or w"), ("1 2 3", "1 2", 7, "expected 3 finite numbers"),
    ("1 2 3", "1 2 inf", 7, "3 finite numbers"), ("4 5 6", "4 five 6", 8, "expected numbers, found '4 five 6'"),
    ("4 5 6\n", "", 8, "ends where line 2 of 2"), ("4 5 6", "4 5 6\n7 8 9", 9, "more after the 2 lines"),
    ("3\nlabel 0 1 2", "1\nlabel 0", 6, "two or more"),
])
def test_malformed_files_are_refused_with_their_line(old, new, line, said, tmp_path):
    assert load_liblinear(in_file(GOOD, tmp_path)).coef_.tolist() == [[1, 4], [2, 5], [3, 6]]
    path = tmp_path / "broken.model"
    path.write_bytes(GOOD.replace(old, new, 1).encode("latin1"))
    with pytest.raises(ValueError, match=f"broken.model' is no LIBLINEAR model: line {line}: .*({said})"):
        load_liblinear(path)


@pytest.mark.parametrize("labels", [Y, np.where(Y == 1, -1, 1), 3 - 2 * (Y == 1)], ids=["three", "signs", "1 and 3"])
@pytest.mark.parametrize("bias", [-1, 1, 2.5])
def test_liblinear_itself_agrees_both_ways(labels, bias, tmp_path):
    util = pytest.importorskip("liblinear.liblinearutil")
    path = str(tmp_path / "a.model")
    for order in (np.arange(len(Y)), np.argsort(labels, kind="stable"), np.argsort(-labels, kind="stable")):
        theirs = util.train(labels[order], X[order], f"-s 2 -c 1 -B {bias} -q")
        util.save_model(path, theirs)
        ours = load_liblinear(path)
        np.testing.assert_array_equal(ours.predict(NEW), util.predict([], NEW, theirs, "-q")[0])
    for make in (lambda: SmSVMClassifier(fit_intercept=bias > 0), lambda: SmSVMClassifier(loss="logistic"),
                 lambda: SLNDClassifier(loss="logistic", random_state=3)):
        ours = make().fit(X, labels)
        save_liblinear(ours, path)
        logistic = ours.loss == "logistic"
        found, _, values = util.predict([], NEW, util.load_model(path), f"-q -b {int(logistic)}")
        np.testing.assert_array_equal(found, ours.predict(NEW))
        if hasattr(ours, "predict_proba"):
            shares = np.array(values)[:, ::-1] if len(ours.classes_) == 2 else values
            np.testing.assert_allclose(shares, ours.predict_proba(NEW), rtol=1e-9, atol=1e-12)
