import importlib
import importlib.util
import subprocess
import sys

import pytest

import cmargin
from cmargin.__main__ import main


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(command in text for command in ("demo", "show-config", "race", "experiments"))


def test_the_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"cmargin {cmargin.__version__}\n"


def test_help_of_the_demo(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--help"])
    assert ended.value.code == 0 and "--out DIR" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["dance"], ["show-config", "--loud"], ["demo", "extra"], ["demo", "--out"]])
def test_usage_errors_end_with_status_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    message = capsys.readouterr()
    assert "usage: cmargin" in message.err and message.out == ""


def test_show_config(capsys):
    assert main(["show-config"]) == 0
    text = capsys.readouterr().out
    assert "OpenMP" in text and "BLAS integers" in text


@pytest.mark.skipif(importlib.util.find_spec("cmargin.measure.race") is not None, reason="the races are there")
def test_race_says_in_one_line_that_it_is_not_there(capsys):
    assert main(["race", "--data", "x", "y"]) == 2
    message = capsys.readouterr()
    assert message.out == "" and message.err.count("\n") == 1 and "race" in message.err


def test_race_hands_its_arguments_on(monkeypatch):
    heard = []
    module = type(sys)("cmargin.measure.race")
    module.main = heard.append
    monkeypatch.setitem(sys.modules, "cmargin.measure.race", module)
    assert main(["race", "-q", "--help", "set", "--out", "x"]) == 0
    assert heard == [["-q", "--help", "set", "--out", "x"]]
    module.main = lambda argv: 3
    assert main(["race"]) == 3


def test_module_runs_and_help_loads_nothing_heavy():
    code = ("import runpy, sys; sys.argv = ['cmargin', '--help']\n"
            "try: runpy.run_module('cmargin', run_name='__main__')\n"
            "finally: print('heavy:', {'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "show-config" in done.stdout and "heavy: set()" in done.stdout


@pytest.mark.parametrize("argv", [["demo"], ["race", "--data", "x"], ["experiments", "list"], ["show-config"]])
def test_an_interrupt_is_a_line(argv, monkeypatch, capsys, tmp_path):
    # a traceback through whatever was running, or being imported
    def interrupted(*arguments):
        raise KeyboardInterrupt

    for module, name in (("cmargin.demo.table", "run"), ("cmargin.measure.race", "main"),
                         ("cmargin.experiments.command", "main"), ("cmargin._runtime.show_config", "show_config")):
        if importlib.util.find_spec(module):
            monkeypatch.setattr(importlib.import_module(module), name, interrupted)
    assert main([*argv, *(["--out", str(tmp_path)] if argv == ["demo"] else [])]) == 130
    assert capsys.readouterr().err == "cmargin: interrupted.\n"
