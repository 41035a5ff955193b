"""Type stubs of the compiled modules, written from what is compiled: ``python -m build_tools.stubs [--check]``.

A stub has what Python can call or read, and nothing of the rest. Parameters and their types are those that Cython
writes into the docstring's first line; functions of fused types have none, and inspect knows their names. What is
returned is Any: the solvers and homes that call know it from the docstring.
"""

import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from pathlib import Path

import cmargin._core

HEAD = "# Written by `python -m build_tools.stubs`."
WIDTH = 120
PLAIN = {"double": "float", "float": "float", "int": "int", "Py_ssize_t": "int", "uint64_t": "int", "bool": "bool",
         "str": "str", "dict": "dict[str, Any]", "tuple": "tuple[Any, ...]"}
PARAMETER = re.compile(r"(?P<type>.*[\s\]])??(?P<name>\*{0,2}\w*)(?P<default>=.*)?")
ANY_ARGUMENTS = "def {name}(self, *args: Any, **kwargs: Any) -> {returned}: ..."
CALLED = ("__call__", "__len__", "__getitem__", "__iter__")
COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def stubs():
    """Path and text of every stub; none for a module that has nothing for Python."""
    names = [found.name for found in pkgutil.walk_packages(cmargin._core.__path__, "cmargin._core.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("._cyutility")]
    modules = [module for module in modules if module.__file__.endswith(COMPILED)]
    homes = {cls.__name__: cls.__module__ for module in modules for cls in classes_of(module)}
    for module in modules:
        body = "\n".join(constants(module) + class_blocks(module, homes) + functions(module, homes)).strip()
        if body:
            folder, name = Path(module.__file__).parent, module.__name__.rpartition(".")[2]
            yield folder / f"{name}.pyi", "\n\n".join([HEAD, *imports(module, body, homes), body]) + "\n"


def classes_of(module):
    """Extension types that are the module's own, bases first."""
    found = [value for value in own(module) if isinstance(value, type)]
    return sorted(found, key=lambda cls: (len(cls.__mro__), cls.__name__))


def own(module):
    """What it defines and does not name with an underscore."""
    return [value for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")]


def imports(module, body, homes):
    if re.search(r"\bAny\b", body):
        yield "from typing import Any"
    if "np." in body:
        yield "import numpy as np"
    others = sorted(f"from {home} import {name}" for name, home in homes.items()
                    if home != module.__name__ and re.search(rf"\b{name}\b", body))
    if others:
        yield "\n".join(others)


def constants(module):
    return [f"{name}: {kind_of(value)}" for name, value in vars(module).items()
            if isinstance(value, int | float | tuple | dict) and not name.startswith("__")]


def kind_of(value):
    kind = type(value).__name__
    if not isinstance(value, tuple | dict):
        return kind
    entry = "str" if all(isinstance(entry, str) for entry in value) else "Any"
    return f"tuple[{entry}, ...]" if kind == "tuple" else f"dict[{entry}, Any]"


def functions(module, homes):
    found = [value for value in own(module) if callable(value) and not isinstance(value, type)]
    return [line for function in found for line in definition(function.__name__, function, homes)]


def class_blocks(module, homes):
    """Attributes, constructor and methods of the classes."""
    lines = []
    for cls in classes_of(module):
        base = cls.__mro__[1].__name__
        attributes, methods = [], [ANY_ARGUMENTS.format(name="__init__", returned="None")]
        if written_parameters(cls) is not None:
            methods = definition("__init__", cls, homes, returned="None")
        for name, value in vars(cls).items():
            if name in CALLED:
                methods.append(ANY_ARGUMENTS.format(name=name, returned="Any"))
            elif inspect.isgetsetdescriptor(value):
                kind = (value.__doc__ or "").partition(f"{name}: ")[2].strip("'")       # as in "low: 'double'"
                attributes.append(f"{name}: {PLAIN.get(kind, 'Any')}")
            elif callable(value) and not name.startswith("__"):
                methods += definition(name, value, homes, method=True)
        lines += ["", f"class {cls.__name__}{'' if base == 'object' else f'({base})'}:",
                  *(f"    {line}" for line in attributes + methods)]
    return [*lines, ""] if lines else []


def written_parameters(function):
    """What the first line of the docstring has between its parentheses, or None."""
    first = (function.__doc__ or "").partition("\n")[0]
    found = re.match(rf"(?:\w+\.)?{function.__name__}\((.*)\)", first)
    return None if found is None or "_fused_sigindex" in first else found[1]


def definition(name, function, homes, returned="Any", method=False):
    """The lines of a ``def``, of ``__init__`` where ``function`` is a class."""
    written = written_parameters(function)
    if written is None:
        written = str(inspect.signature(function))[1:-1]
    texts = re.split(r",\s(?![^[(]*[\])])", written) if written else []         # not within brackets
    arguments = ["self"] * isinstance(function, type) + [argument(text, homes) for text in texts]
    line = f"def {name}({', '.join(arguments)}) -> {returned}: ..."
    room = WIDTH - 4 * (method or isinstance(function, type))
    if len(line) <= room:
        return [line]
    whole = ", ".join(text.replace(" ", "\0") for text in arguments)            # a line ends between arguments
    wrapped = textwrap.wrap(f"{whole},", room - 4, break_long_words=False)
    return [f"def {name}(", *(f"    {some}".replace("\0", " ") for some in wrapped), f") -> {returned}: ..."]


def argument(text, homes):
    """``const double[::1] code=None`` as ``code: np.ndarray | None = ...``."""
    kind, name, default = PARAMETER.fullmatch(text).group("type", "name", "default")
    kind = (kind or "").replace("const", "").strip()
    if name in ("self", "*", "/"):
        return name
    kind = "np.ndarray" if kind.endswith("]") else PLAIN.get(kind, kind if kind in homes else "Any")
    if default == "=None" and kind != "Any":
        kind += " | None"
    return f"{name}: {kind}{' = ...' if default else ''}"


def main(check):
    """Write the stubs, or with ``check`` name those that are not as they would be written; whether all were."""
    wanted = dict(stubs())
    there = set(Path(cmargin._core.__file__).parent.rglob("*.pyi"))
    wrong = {path for path, text in wanted.items() if path not in there or path.read_text() != text}
    for path in sorted(wrong | (there - set(wanted))):
        if check:
            print(f"{path} is not what `python -m build_tools.stubs` writes")
        elif path in wanted:
            path.write_text(wanted[path])
        else:
            path.unlink()
    return not (wrong or there - set(wanted))


if __name__ == "__main__":
    sys.exit(not main(check=True) if "--check" in sys.argv[1:] else main(check=False) and 0)
