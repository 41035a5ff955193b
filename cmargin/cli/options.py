"""Options of ``cmargin fit``, ``predict``, ``evaluate``, ``explain``, ``convert``; nothing heavy is imported here."""

import argparse

METHODS = {"slnd": "SLNDClassifier", "bsn": "BSNClassifier", "smsvm": "SmSVMClassifier",
           "pursuit": "MarginPursuitClassifier", "pegasos": "PegasosClassifier", "smsvm-regressor": "SmSVMRegressor"}
REGRESSORS = ("smsvm-regressor",)          # of numbers, not of labels
FORMATS = ("csv", "tsv", "parquet", "feather", "arff", "svmlight", "npz", "npy", "mat", "hdf5", "h5ad", "mtx")
DATA_HELP = ("rows: a table with a column of labels (.csv, .tsv, .parquet, .feather, .arff); svmlight text under any "
             "name, with one label a row or several (1,5,7 3:0.2 ...), also the extreme classification repository's, "
             "whose first line counts rows, columns and labels; text may be compressed (.csv.gz, .svm.xz, ...); .npz, "
             ".mat or .h5 with X and y; .npy, .mtx or a folder of 10x with --labels; .h5ad with --label; or a folder "
             "from `cmargin convert`")


def add_commands(commands):
    """Add the five parsers to the subparsers."""
    fit = commands.add_parser("fit", help="train a classifier, or a regression, on your own data", description=(
        "Train a classifier, or by --method smsvm-regressor a regression, on the rows of DATA and store it in a file. "
        "A Ctrl-C stores the best weights so far."))
    _data(fit)
    fit.add_argument("--model", metavar="FILE", required=True, help="where to store the model")
    fit.add_argument("--method", choices=tuple(METHODS), default="slnd", help=(
        "default: slnd. smsvm-regressor fits numbers: whatever is said of labels below is of these targets then"))
    fit.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], type=_assignment,
                     help="a parameter of the method's class, such as l2=1e-3 or groups=[0,0,1]; may be repeated")
    fit.add_argument("--scale", choices=("auto", "columns", "rows", "none"), default="auto", help=(
        "columns to mean 0 and variance 1, rows to length 1, or neither; stored with the model. auto, the default: "
        "columns of dense data that fit into memory"))
    _chosen_columns(fit)
    fit.add_argument("--checkpoint", metavar="FILE",
                     help="keep the state of training there; if it is ended, the same command continues from it")
    fit.add_argument("--max-time", metavar="SECONDS", type=_positive,
                     help="stop after that time and store the best weights")
    fit.add_argument("--seed", metavar="N", type=_seed, default=0, help="seed of the random numbers; default: 0")
    fit.add_argument("--threads", metavar="N", type=_threads, help=(
        "default: as many as OpenMP offers; -1: as many as there are processors"))
    fit.add_argument("--quiet", action="store_true", help="print errors only")
    _top(fit, "say how often the right labels are among the K best; `evaluate` does so too")
    fit.set_defaults(run="fit")

    predict = commands.add_parser("predict", help="label rows with a stored model", description=(
        "Print a label for every row of DATA, or its probabilities or scores, one line a row; of a regression its "
        "predictions."))
    _data(predict)
    _model(predict)
    predict.add_argument("--what", choices=("labels", "probabilities", "scores"), default="labels")
    predict.add_argument("--out", metavar="FILE", help="a text file, or .npy; default: standard output")
    _top(predict, "print the K best labels of every row, best first")
    predict.set_defaults(run="predict")

    evaluate = commands.add_parser("evaluate", help="report on a stored model and labelled rows", description=(
        "Accuracy, confusion matrix, F1, AUC, margins and, where there are probabilities, calibration of a model on "
        "the rows of DATA; of a regression R2, errors and, for quantiles, pinball losses."))
    evaluate.add_argument("--format", choices=("text", "json", "html"), default="text", help=(
        "of the report: html is one page that holds its plots; default: text"))
    _data(evaluate)
    _model(evaluate)
    evaluate.add_argument("--out", metavar="FILE", help="default: standard output")
    _top(evaluate, "where rows have several labels: report up to P@K; default: that of `fit`, or 5")
    evaluate.set_defaults(run="evaluate")

    _add_explain(commands)

    convert = commands.add_parser("convert", help="make svmlight text into files that rows are trained from",
                                  description="Make svmlight text, which may be larger than memory, into a folder of "
                                              "the arrays of a CSR matrix and its labels.")
    convert.add_argument("text", metavar="TEXT", help="the text")
    convert.add_argument("folder", metavar="FOLDER", help="where to put the arrays")
    convert.add_argument("--dtype", choices=("float32", "float64"), default="float32", help="default: float32")
    convert.add_argument("--features", type=int, metavar="N", help="columns (default: as many as there are)")
    convert.add_argument("--zero-based", action="store_true", help="the first column is called 0, not 1")
    convert.set_defaults(run="convert")


def _add_explain(commands):
    explain = commands.add_parser("explain", help="print how a classifier would be trained, and why", description=(
        "Print the stages of a fit and why each is chosen, without training: for the rows of DATA, or for a shape that "
        "is given by --rows and --columns."))
    _data(explain, nargs="?")
    explain.add_argument("--method", choices=("smsvm", "pursuit", "slnd", "smsvm-regressor"), default="smsvm",
                         help="default: smsvm")
    for name, what in (("rows", "rows of the shape"), ("columns", "columns of the shape")):
        explain.add_argument(f"--{name}", metavar="N", type=_count, help=what)
    explain.add_argument("--density", metavar="SHARE", type=_share, help="stored share of sparse rows; default: dense")
    explain.add_argument("--classes", metavar="N", type=_count, default=2, help="classes of the shape; default: 2")
    explain.add_argument("--dtype", choices=("float32", "float64"), default="float64", help="default: float64")
    explain.add_argument("--place", choices=("memory", "files", "device", "ranks", "workers"), default="memory",
                         help="where the rows of the shape are; default: memory")
    explain.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], type=_assignment,
                         help="a parameter of the method's class, such as l2=1e-3; may be repeated")
    explain.set_defaults(run="explain")


def _chosen_columns(command):
    command.add_argument("--keep", metavar="COLUMNS", help=(
        "tables only: the features, by names or numbers from 0, with commas between; default: all but the labels"))
    command.add_argument("--drop", metavar="COLUMNS", help="tables only: columns that are no features")
    command.add_argument("--encode", choices=("onehot",), help=(
        "tables only: make a feature of every text that a column of texts holds; stored with the model"))
    command.add_argument("--impute", choices=("mean", "median"), help=(
        "tables only: fill gaps among the numbers of a column by these; stored with the model"))


def _data(command, **more):
    command.add_argument("data", metavar="DATA", help=DATA_HELP, **more)
    command.add_argument("--label", metavar="COLUMN", help="tables only: the column of labels, by its name or its "
                                                           "number from 0; default: the last")
    command.add_argument("--labels", metavar="FILE", help="the labels of the rows: .npy, or text with one a line")
    also = [] if "--format" in command._option_string_actions else ["--format"]          # of the report of `evaluate`
    command.add_argument("--data-format", *also, choices=FORMATS, help=(
        "default: by the name of the file, or by what is in it"))
    command.add_argument("--features-key", metavar="KEY", help=(
        ".mat and .h5 only: the array of the features; default: X, or the only one that it can be"))
    command.add_argument("--labels-key", metavar="KEY", help=".mat and .h5 only: the array of the labels; default: y")
    command.set_defaults(keep=None, drop=None, encode=None, impute=None)
    command.add_argument("--header", choices=("auto", "yes", "no"), default="auto", help=(
        "whether the first line of a text table holds names; auto: yes if no cell of it is a number, or if the numbers "
        "are those of the columns (0,1,2,target)"))
    command.add_argument("--zero-based", action="store_true", help="svmlight only: columns are numbered from 0, not 1")


def _model(command):
    command.add_argument("--model", metavar="FILE", required=True,
                         help="from `cmargin fit`")
    command.add_argument("--trust-pickle", action="store_true", help=(
        "open a model of cmargin before 0.1, a pickle, which can run anything that its author wanted"))


def _top(command, what):
    command.add_argument("--top", metavar="K", type=_count, help=what)


def _assignment(text):
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def _positive(text):
    return _number(text, "seconds above 0", lambda seconds: 0 < seconds < float("inf"))


def _share(text):
    return _number(text, "a share above 0 and up to 1", lambda share: 0 < share <= 1)


def _number(text, expected, is_good):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not is_good(value):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return value


def _count(text):
    return _whole(text, "a whole number above 0", lambda n: n > 0)


def _threads(text):
    return _whole(text, "a number of threads, or -1", lambda n: n != 0)


def _seed(text):
    return _whole(text, "a whole number from 0 to 2**32 - 1", lambda n: 0 <= n < 2**32)


def _whole(text, expected, is_good):
    if not text.removeprefix("-").isdecimal() or not is_good(int(text)):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return int(text)
