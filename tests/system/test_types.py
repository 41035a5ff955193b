"""What `py.typed` promises: annotations that a type checker agrees with, and stubs that name what is compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from installation import ROOT, run

import cmargin

PACKAGE = Path(cmargin.__file__).parent


def test_stubs_are_what_the_compiled_modules_say():
    if not (ROOT / "setup.py").exists():
        pytest.skip("the tests are not in a checkout")
    assert run([sys.executable, "-m", "build_tools.stubs", "--check"], ROOT) == ""


def test_a_users_program_is_checked(tmp_path):
    # its wrong lines say which error they are, and mypy tells of those that are none
    pytest.importorskip("mypy")
    program = Path(__file__).parent / "typed" / "user_program.py"
    # mypy finds what is installed by itself, and refuses to be told where
    place = {} if PACKAGE.parent.name == "site-packages" else {"MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--cache-dir",
         str(tmp_path / "cache"), str(program)],
        cwd=tmp_path, env={**os.environ, **place}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
