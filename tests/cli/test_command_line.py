import importlib
import subprocess
import sys

import pytest
from started import BENCHES, ROOT, python

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


@pytest.mark.parametrize("command", ["race", "experiments"])
def test_what_is_in_the_checkout_alone_is_said_in_one_line(command, monkeypatch, capsys, tmp_path):
    # installed, the package has no races and no experiments beside it
    monkeypatch.setattr("cmargin.__main__.BENCHES", tmp_path / "asv_benches")
    assert main([command, "--data", "x", "y"]) == 2
    message = capsys.readouterr()
    assert message.out == "" and message.err.count("\n") == 1
    assert message.err.startswith(f"cmargin: {command} is not installed") and "checkout" in message.err


def test_what_cannot_be_imported_there_is_said_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("cmargin.__main__.BENCHES", tmp_path)
    monkeypatch.setitem(sys.modules, "race", None)
    assert main(["race"]) == 2
    message = capsys.readouterr()
    assert message.out == "" and message.err.count("\n") == 1 and message.err.startswith("cmargin: race cannot be run")


def test_races_and_experiments_run_from_any_folder(tmp_path):
    if not BENCHES.is_dir():
        pytest.skip("the benchmarks are not beside the tests")
    for command in ("race", "experiments"):
        assert f"usage: cmargin {command}" in python("-m", "cmargin", command, "--help", folders=[ROOT], cwd=tmp_path)


def test_race_hands_its_arguments_on(monkeypatch, tmp_path):
    heard = []
    monkeypatch.setattr("cmargin.__main__.BENCHES", tmp_path)
    module = type(sys)("race")
    module.main = heard.append
    monkeypatch.setitem(sys.modules, "race", module)
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
    if argv[0] in ("race", "experiments"):
        pytest.importorskip("asv_benches", reason="the benchmarks are not beside the tests")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    for module, name in (("cmargin.demo.table", "run"), ("race", "main"),
                         ("experiments.command", "main"), ("cmargin._runtime.show_config", "show_config")):
        if module.partition(".")[0] in ("cmargin", argv[0]):
            monkeypatch.setattr(importlib.import_module(module), name, interrupted)
    assert main([*argv, *(["--out", str(tmp_path)] if argv == ["demo"] else [])]) == 130
    assert capsys.readouterr().err == "cmargin: interrupted.\n"
