"""The compiled core as tests see it: where a kernel lies is said here and nowhere else among the tests."""

# ruff: noqa: F401 - they are there to be imported

from pathlib import Path

import cmargin._core
from cmargin._core.lanes._lane_batch import LANE_COUNT
from cmargin._core.linalg import _blas, _blas_libraries, _eigh
from cmargin._core.linalg._blas import lanes_here
from cmargin._core.losses import _losses
from cmargin._core.losses._losses import FACTS, LOSS_IDS, evaluate, gains
from cmargin._core.multinomial._inverse import ClassBlocks, rows_above
from cmargin._core.multinomial._newton import ASTRAY, NEAR, ONWARD, SLICE_OVER, STANDS, MultinomialNewton
from cmargin._core.multinomial._step import MultinomialStep, penalised
from cmargin._core.newton import _bound, _column_path, _line
from cmargin._core.newton._asking import advance_all, now
from cmargin._core.newton._bound import ROUNDING
from cmargin._core.newton._c_memory import limits_of_c_programs
from cmargin._core.newton._line import exact_step
from cmargin._core.newton._memory import STATUS
from cmargin._core.newton._smoothing import widths
from cmargin._core.newton.direction import _conjugate_gradients, _constrained_model, _group_model, _system
from cmargin._core.newton.direction._bfgs import BFGSHessian
from cmargin._core.newton.direction._conjugate_gradients import conjugate_gradients_of
from cmargin._core.newton.direction._l1_model import model_minimum
from cmargin._core.penalties import _penalties
from cmargin._core.rows import _dual_evaluate, _line_sums
from cmargin._core.rows._column_model import ColumnModel
from cmargin._core.rows._dual_evaluate import smooth_minimum
from cmargin._core.rows._dual_rows import DualBlocks
from cmargin._core.rows._dual_sweeps import WISHES, DualSweeps
from cmargin._core.rows._predicted_rows import predict_rows
from cmargin._core.rows._row_sample import chosen, numbers
from cmargin._core.rows._row_windows import RowWindows
from cmargin._core.rows._rows import Rows
from cmargin._core.rows._structure import check_structure
from cmargin._core.rows._working_set import are_below, count, count_distances, crossings, sum_of_members, with_nearest
from cmargin._core.sgd import (
    _class_pass,
    _class_sgd,
    _gradient_rules,
    _low_rank,
    _projected_sgd,
    _refreshed_sgd,
    _sgdqn,
    _softmax_sgd,
    _softmax_walkers,
    _theory_sgd,
    _whiten,
)
from cmargin._core.sgd._alias import alias_table
from cmargin._core.sgd._class_sgd import mean_stride
from cmargin._core.sgd._scaled_losses import scaled_losses
from cmargin._core.util import _catoni, _fp_control, _margin_summary, _sorting
from cmargin._core.util._arrays import (
    all_finite,
    any_nonzero,
    copied,
    difference_moments,
    lines_finite,
    marked,
    square_sum,
    total,
    transposed,
    zeros,
)
from cmargin._core.util._catoni import location
from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._core.util._labels import count_codes, rows_by_class
from cmargin._core.util._openmp import effective_n_threads, threads_seen
from cmargin._core.util._sampling import held_last, shuffle
from cmargin._core.util._sorting import with_sorted_places
from cmargin._core.util._team import who_did

KERNELS = Path(cmargin._core.__file__).parent
