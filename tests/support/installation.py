"""What an installation holds, in a folder of its own, to build against or to change."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import cmargin

ROOT = Path(__file__).resolve().parents[2]


def run(command, folder, **environment):
    """What the command prints."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def installed(folder):
    """The files that are packaged, and the compiled modules, into ``folder``; it is returned."""
    run([sys.executable, "setup.py", "-q", "build_py", "-d", str(folder)], ROOT)
    package = Path(cmargin.__file__).parent
    for module in package.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
        shutil.copy2(module, folder / "cmargin" / module.relative_to(package).parent)
    return folder
