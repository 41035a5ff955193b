"""What an earlier build compiled is found again by contents, never by the clock (build_tools/kept_modules.py)."""

import os
import sys
from types import SimpleNamespace

import pytest
from installation import ROOT

sys.path.insert(0, str(ROOT))
from build_tools.kept_modules import AT_MOST, KeptModules, compiler_says, of_contents, put, with_included


@pytest.fixture
def extension(tmp_path):
    (tmp_path / "rows.pyx").write_text("cdef int n\n")
    return SimpleNamespace(name="cmargin._core.rows", sources=[str(tmp_path / "rows.pyx")], include_dirs=["a"],
                           extra_compile_args=["-O3"], extra_link_args=[])


def test_a_module_is_found_whose_source_only_became_younger(extension, tmp_path):
    path = KeptModules(tmp_path, ["gcc 12"]).path(extension)
    os.utime(extension.sources[0], (4e9, 4e9))
    assert KeptModules(tmp_path, ["gcc 12"]).path(extension) == path


@pytest.mark.parametrize("change", [
    lambda extension: setattr(extension, "extra_compile_args", ["-O1"]),
    lambda extension: setattr(extension, "extra_link_args", ["-fopenmp"]),
    lambda extension: setattr(extension, "name", "cmargin._core.other"),
    lambda extension: setattr(extension, "include_dirs", ["b"]),
    lambda extension: open(extension.sources[0], "a").write("\n"),
])
def test_a_module_of_another_source_or_other_flags_is_another(extension, tmp_path, change):
    known = KeptModules(tmp_path, ["gcc 12"])
    before = known.path(extension)
    change(extension)
    assert known.path(extension) != before


def test_a_module_of_other_declarations_or_compilers_is_another(extension, tmp_path):
    (tmp_path / "rows.pxd").write_text("cdef int n\n")
    before = of_contents([tmp_path / "rows.pxd"])
    (tmp_path / "rows.pxd").write_text("cdef long n\n")
    after = of_contents([tmp_path / "rows.pxd"])
    (tmp_path / "rows.pxd").unlink()
    assert len({before, after, of_contents([tmp_path / "rows.pxd"]), of_contents([])}) == 4
    assert KeptModules(tmp_path, [before]).path(extension) != KeptModules(tmp_path, [after]).path(extension)


def test_what_cython_writes_is_no_source(extension, tmp_path):
    extension.sources = [str(tmp_path / "shared.c")]
    path = KeptModules(tmp_path, []).path(extension)
    (tmp_path / "shared.c").write_text("int n;")
    assert KeptModules(tmp_path, []).path(extension) == path


def test_few_builds_of_a_module_are_kept(extension, tmp_path):
    (tmp_path / "built").write_bytes(b"module")
    for number in range(AT_MOST + 3):
        known = KeptModules(tmp_path / "modules", [number])
        known.keep(tmp_path / "built", known.path(extension))
        os.utime(known.path(extension), (number, number))
    kept = list((tmp_path / "modules").iterdir())
    assert len(kept) == AT_MOST and known.path(extension) in kept
    assert known.path(extension).read_bytes() == b"module"


def test_a_build_that_cannot_keep_its_modules_goes_on(extension, tmp_path):
    (tmp_path / "built").write_bytes(b"module")
    (tmp_path / "modules").write_text("a file where the folder would be")
    known = KeptModules(tmp_path / "modules", [])
    known.keep(tmp_path / "built", known.path(extension))
    assert not known.path(extension).exists()


def test_a_module_is_replaced_whole(tmp_path):
    """Whoever has the older file open goes on with it."""
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "place").write_bytes(b"old")
    with open(tmp_path / "place", "rb") as reader:
        put(tmp_path / "new", tmp_path / "place")
        assert reader.read() == b"old"
    assert (tmp_path / "place").read_bytes() == b"new" and len(list(tmp_path.iterdir())) == 2


def test_a_compiler_that_is_not_there_says_nothing():
    assert compiler_says(["no-such-compiler"]) == ["no-such-compiler"]
    assert any("Python" in said for said in compiler_says([sys.executable]))


def test_headers_of_headers_are_looked_at(tmp_path):
    # a module was left as it was where only what its header includes had changed
    (tmp_path / "one.h").write_text('#include <math.h>\n#include "two.h"\n')
    (tmp_path / "two.h").write_text('#include "three.h"\n#include "absent.h"\n')
    (tmp_path / "three.h").write_text('#include "one.h"\n')
    found = with_included([str(tmp_path / "one.h")], tmp_path)
    assert found == [str(tmp_path / f"{name}.h") for name in ("one", "two", "three")]
