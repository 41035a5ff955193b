"""Who imports whom: one way through the layers, and no circles; read from the text, so that nothing is left out."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import cmargin

PACKAGE = Path(cmargin.__file__).parent
# from the bottom to the top; what is not here (commands, diagnostics' plots, embedding) stands above them all
LAYERS = [("_version", "_build_config"), ("_core.util", "_core.linalg"), ("_core.losses", "_core.penalties"),
          ("_core.rows",),
          ("_core.newton", "_core.dual", "_core.gram", "_core.lanes", "_core.multinomial", "_core.sgd"),
          ("_runtime",), ("data",), ("solvers",), ("_estimators",),
          ("slnd", "slnd_cv", "slnd_paths", "smsvm", "smsvm_cv", "nested_cv", "paths", "pursuit", "baselines",
           "one_class"),
          ("export", "margins"), ("_figures",), ("_path_display", "_search_display"), ("plots",)]
# data names no solver; how rows are walked by stochastic methods (_core.sgd), and read by many problems side by side
# (_core.lanes, _core.gram), is known to the place of the rows
APART = [("data", "_core.newton"), ("data", "_core.dual"), ("data", "_core.multinomial")]

# What stands against the rules today, to become less: a line that is not true any more fails, as a new one does.
AGAINST = {}                     # {who: whom}, at the head of a file
AGAINST_WITHIN = {}              # within a function
CIRCLES = [
    {"_api_table", "api"},
]
CIMPORT = re.compile(r"^( *)(?:from\s+(cmargin[\w.]*)\s+c?import\s+(\([^)]*\)|(?:[^\\\n]|\\\n)*)"
                     r"|c?import\s+(cmargin[\w.]*))", re.MULTILINE)


def modules():
    """{name without the package's own: files}: a .pyx and its .pxd are one module."""
    found = {}
    for path in sorted(path for ending in ("py", "pyx", "pxd") for path in PACKAGE.rglob(f"*.{ending}")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), []).append(path)
    return found


def of_python(text):
    """(module, names, whether within a function) of every import of the package, but for those for type checkers."""
    def visit(node, within):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and getattr(child.test, "id", None) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name, [], within) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield child.module or "", [alias.name for alias in child.names], within
            yield from visit(child, within or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    return visit(ast.parse(text), False)


def of_cython(text):
    for indent, module, names, whole in CIMPORT.findall(text):
        names = re.sub(r"#.*|\bas \w+|[()\\]", " ", names)
        yield module or whole, re.findall(r"\w+", names), bool(indent)


def imports():
    """{(who, whom): whether only within functions}"""
    there, found = modules(), {}
    for who, paths in there.items():
        for path in paths:
            read = of_python if path.suffix == ".py" else of_cython
            for module, names, within in read(path.read_text()):
                if module.partition(".")[0] != "cmargin":
                    continue
                base = module.removeprefix("cmargin").removeprefix(".")
                for name in names or [""]:
                    whom = f"{base}.{name}".strip(".")
                    whom = whom if whom in there else base
                    if whom != who:
                        found[who, whom] = found.get((who, whom), True) and within
    return found


def layer(name):
    """(number, name of the layer) of a module."""
    for number, names in enumerate(LAYERS):
        for own in names:
            if name == own or name.startswith(f"{own}."):
                return number, own
    return len(LAYERS), name.partition(".")[0]


def against_the_rules():
    """(at the head, within functions), each {who: modules that it imports and should not know}"""
    found = {}, {}
    for (who, whom), within in imports().items():
        (low, own), (high, other) = layer(who), layer(whom)
        if low < high or (own, other) in APART:
            found[within].setdefault(who, set()).add(whom)
    return found


def circles():
    """Sets of modules that import each other round and round (Tarjan's strongly connected components)."""
    after = {}
    for who, whom in imports():
        after.setdefault(who, []).append(whom)
    number, lowest, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in after.get(name, ()):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            circle = stack[stack.index(name):]
            del stack[stack.index(name):]
            if len(circle) > 1:
                found.append(set(circle))

    for name in after:
        if name not in number:
            visit(name)
    return found


def test_imports_go_one_way():
    heads, within = against_the_rules()
    assert heads == AGAINST
    assert within == AGAINST_WITHIN


def test_no_circle_but_those_that_are_known():
    assert sorted(map(sorted, circles())) == sorted(map(sorted, CIRCLES))


def test_tests_import_the_compiled_core_through_one_module():
    # a kernel that moved was a change of every module of tests that named it; 44 did. What compares two checkouts
    # imports each one's own
    tests = Path(__file__).parents[1]
    importing = re.compile(r"^\s*(?:from|import) +cmargin\._core\b(?!.*\bcimport\b)", re.MULTILINE)
    found = {path.relative_to(tests).as_posix() for path in tests.rglob("*.py") if importing.search(path.read_text())}
    assert found == {"kernels/api.py", "support/bits.py"}


def test_every_kind_of_import_is_read():
    found = imports()
    assert found["slnd", "_estimators.by_parts"] is False                   # a .py
    assert found["_core.losses._losses", "_core.util._shapes"] is False     # a .pyx, which cimports
    assert found["_core.losses._hinge", "_core.losses._point"] is False     # a .pxd
    assert found["__main__", "demo.table"] is True                          # within a function


@pytest.mark.parametrize("X", [np.eye(8), sparse.eye(8, format="csr")], ids=["dense", "CSR"])
def test_rows_enter_eight_files_at_most_on_their_way_into_a_fit(X):
    # X went through 17 of them, and an array in memory was asked whether it is a tensor, or names files
    y, entered = np.arange(8) % 2, []
    model = cmargin.SmSVMClassifier().fit(X, y)          # what is imported late is there

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and Path(code.co_filename).is_relative_to(PACKAGE) and \
                any(frame.f_locals.get(name) is X for name in code.co_varnames[:code.co_argcount]):
            entered.append(Path(code.co_filename).relative_to(PACKAGE).as_posix())

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(before)
    assert entered[:2] == ["smsvm.py", "_estimators/base.py"] and "data/memory/source.py" in entered
    assert len(set(entered) - {"smsvm.py"}) <= 8, entered        # beside the estimator's own, which takes an offset
