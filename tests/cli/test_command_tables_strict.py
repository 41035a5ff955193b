"""First lines of numbers that are names, names in quotes, every name that columns share; links that stay links."""

from types import SimpleNamespace

import numpy as np
import pytest
from trees import asked

from cmargin import Checkpoint
from cmargin._runtime import output
from cmargin._runtime.checkpoint import Checkpointer
from cmargin.cli.tables import read_csv

pytestmark = pytest.mark.usefixtures("reader")


def table_of(folder, text, *, header="auto", label=None, known=None):
    (folder / "a.csv").write_text(text)
    return read_csv(str(folder / "a.csv"), options=asked(header=header), label=label, known=known)


@pytest.mark.parametrize(("text", "label"), [
    ("0,1,2,target\n5,6,7,0\n8,9,1,1\n", None), ("0,1,2,target\n5,6,7,0\n8,9,1,1\n", "target"),
    ("0,1,target,2\n5,6,0,7\n8,9,1,1\n", "target"), ("0,1,target,2\n5,6,0,7\n8,9,1,1\n", "2"),
    ('"0","1","2","target"\n5,6,7,0\n8,9,1,1\n', None)])
def test_numbers_of_columns_are_names_of_columns(tmp_path, text, label):
    table = table_of(tmp_path, text, label=label)
    assert table.columns == ["0", "1", "2"] and table.label == "target"
    assert table.X.tolist() == [[5, 6, 7], [8, 9, 1]] and table.y.tolist() == [0, 1]


def test_names_in_quotes_after_a_space(tmp_path):
    table = table_of(tmp_path, 'wide, "high", "deep, wide", "kind"\n1, 2, 3, 0\n4, 5, 6, "1"\n')
    assert table.columns == ["wide", "high", "deep, wide"] and table.label == "kind"
    assert table.X.tolist() == [[1, 2, 3], [4, 5, 6]] and table.y.tolist() == [0, 1]


@pytest.mark.parametrize("text", ["0,1,2,oak\n5,6,7,elm\n8,9,1,oak\n", "5.1,3.5,1.4,oak\n5,6,7,elm\n8,9,1,elm\n",
                                  "0,1,2,oak\n"])
def test_a_row_of_numbers_and_a_class_is_a_row(tmp_path, text):
    table = table_of(tmp_path, text)
    assert table.columns is None and len(table.X) == text.count("\n") and table.y[0] == "oak"
    assert len(table_of(tmp_path, "0,1,2,target\n5,6,7,0\n", header="no").X) == 2


def test_names_that_the_model_knows_are_no_row_whatever_they_look_like(tmp_path):
    known = SimpleNamespace(columns=["0", "1", "2"], label="target", n_features=3, n_columns=3, encoder=None,
                            regresses=False, classifier=SimpleNamespace(classes_=np.array([0, 1])))
    table = table_of(tmp_path, "0,1,2\n5,6,7\n", known=known)
    assert table.X.tolist() == [[5, 6, 7]] and table.y is None
    table = table_of(tmp_path, "target,2,1,0\n1,7,6,5\n", known=known)
    assert table.X.tolist() == [[5, 6, 7]] and table.y.tolist() == [1]
    assert len(table_of(tmp_path, "0,1,3\n5,6,7\n", known=known).X) == 2


def test_all_names_that_columns_share_are_told(tmp_path):
    with pytest.raises(ValueError, match="more than one column 'a', 'b': "):
        table_of(tmp_path, "a,b,a,b,kind\n1,2,3,4,0\n")


def test_a_checkpoint_that_is_a_link_stays_one(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(target)
    Checkpointer(Checkpoint(link), {"of": "this"}).write(0, {"state": 1})
    assert link.is_symlink() and target.is_file() and [*target.parent.iterdir()] == [target]
    checkpointer = Checkpointer(Checkpoint(link), {"of": "this"})
    assert checkpointer.found == {"state": 1}
    checkpointer.end("tol")
    checkpointer.close()
    assert link.is_symlink() and not target.exists()


def test_files_in_memory_are_replaced_as_any_and_open_ones_written_to():
    assert not "/dev/shm/model".startswith(output.OPEN_FILES)
    assert all(path.startswith(output.OPEN_FILES) for path in ("/dev/stdout", "/dev/stderr", "/dev/fd/1"))
