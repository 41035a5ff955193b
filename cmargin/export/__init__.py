"""Trained models for those who do not have this package: scikit-learn's objects, ONNX through them, LIBLINEAR's files.

    model.to_sklearn()                                        # a LinearSVC, a LogisticRegression, or many of them
    skl2onnx.to_onnx(model.to_sklearn(), X[:1].astype("f"))   # ONNX, by skl2onnx: nothing of ours is registered there
    model.save("digits.cmargin")                              # arrays and JSON; cmargin.load opens them
    save_liblinear(model, "digits.model")                     # LIBLINEAR's text
    model = load_liblinear("digits.model")
"""

from cmargin.export.liblinear import load_liblinear, save_liblinear

__all__ = ["load_liblinear", "save_liblinear"]
