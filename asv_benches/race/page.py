"""The page of a race over losses, sets, penalties and seeds: medians and worst cases, performance profiles.

Profiles are Dolan and Moré's (2002): the share of problems that a solver finishes within a factor of whoever was the
quickest there. A problem is one loss, set, penalty and seed.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from experiments._frame import Table, groups
from experiments._page import machines, markdown
from race.grid import EXACT, TARGET, in_words, solvers_of, stands_still
from race.losses import OURS, PEERS

TITLE = "Every loss on every shape"
NEAR, EXACTLY = (f"{value:.0e}".replace("e-0", "e-") for value in (TARGET, EXACT))
SETTING = f"""Seconds until the objective, computed by one function on the rows in float64, is within {NEAR} of its
optimum, for which a fit of ours with tol={EXACTLY} is taken. Dense columns are standardised, sparse rows
as stored; a column of ones, penalised like the rest, is everybody's intercept. Every solver is run from the start again
and again, with twice the iterations each time (three times for tolerances), and the quickest run that is near enough
counts: what a user would have waited who knew when to stop. `cmargin-certified` is one fit that stops by itself, at a
certified gap of 1e-4. One thread is timed by the processor's time, several by the clock. A seed is another order of the
rows, another draw of a made set, and the solvers' own random numbers."""


def seconds_of(row):
    """Seconds to the target, inf where it was not reached."""
    found = row.get("seconds")
    return np.inf if found is None else found


def profiles(rows):
    """({solver: its factors over the quickest, sorted, inf where it did not arrive}, number of problems) of one loss.

    Problems that nobody finished say nothing and are left out.
    """
    quickest = {}
    for row in rows:
        key = row["data"], row["l2"], row["seed"]
        quickest[key] = min(quickest.get(key, np.inf), seconds_of(row))
    solved = {key: best for key, best in quickest.items() if np.isfinite(best)}
    found = {}
    for solver, own in groups(rows, "solver").items():
        factors = [seconds_of(row) / solved[key] for row in own
                   if (key := (row["data"], row["l2"], row["seed"])) in solved]
        found[solver] = np.sort(factors + [np.inf] * (len(solved) - len(factors)))
    return found, len(solved)


def draw(rows):
    """The profiles, a panel for each loss."""
    from cmargin.demo.plots import plain_log_axis
    from experiments._figures import curve, panels

    by_loss = groups(rows, "loss")
    figure, axes = panels(by_loss, height=4.4)
    for loss, ax in axes.items():
        found, _ = profiles(by_loss[loss])
        names = list(PEERS[loss])
        arrived = {solver: factors[np.isfinite(factors)] for solver, factors in found.items()}
        end = 1.3 * max(10.0, *(factors.max(initial=1.0) for factors in arrived.values()), 1.0)
        for solver, factors in arrived.items():
            share = np.arange(len(factors) + 1) / max(len(found[solver]), 1)
            curve(ax, np.r_[1.0, factors, end], np.r_[share, share[-1]], solver, names.index(solver),
                  drawstyle="steps-post", marker="")
        ax.set(xscale="log", xlim=(1, end), ylim=(0, 1.03), title=loss.replace("_", " "),
               xlabel="factor over the quickest")
        plain_log_axis(ax.xaxis)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False, fontsize="small")
    next(iter(axes.values())).set_ylabel("share of problems finished")
    return figure


def ranking(rows):
    """How each solver did over all problems of a loss."""
    found, count = profiles(rows)
    lines = []
    for solver, factors in found.items():
        arrived = np.isfinite(factors)
        lines.append([solver, f"{int((factors == 1).sum())} of {count}", f"{int(arrived.sum())} of {count}",
                      *(f"{value:.3g}" if np.isfinite(value) else "never"
                        for value in ((np.median(factors), factors.max()) if count else (np.inf, np.inf)))])
    return Table(f"{count} problems; factors are over the quickest solver of each",
                 ("solver", "quickest in", f"within {NEAR} in", "median factor", "worst factor"), lines)


def ratio(solver, medians, waited):
    """Median seconds over those of the best peer, with < or > where one of the two had too little time.

    ``waited``: of those who ran out of time, how long they ran; who stands still has no time that would do.
    """
    mine = medians[solver]
    best = min((value for name, value in medians.items() if name not in OURS), default=np.inf)
    if np.isfinite(best):
        seconds, sign = (mine, "") if np.isfinite(mine) else (waited.get(solver), ">")
        return f"{sign}{seconds / best:.2g}" if seconds else "–"
    late = [value for name, value in waited.items() if name not in OURS]
    return f"<{mine / min(late):.2g}" if np.isfinite(mine) and late else "–"


def line_of(solver, rows, limit, of_best):
    """Cells of one solver on one problem: reached, median, worst, ratio, passes."""
    found = np.array([seconds_of(row) for row in rows])
    median, worst = float(np.median(found)), float(found.max())
    missed = [row for row in rows if not np.isfinite(seconds_of(row))]
    missed.sort(key=lambda row: row.get("distance", np.inf))
    typical = in_words(missed[len(missed) // 2]) if missed else ""
    passes = [row["passes"] for row in rows if row.get("passes") is not None and np.isfinite(seconds_of(row))]
    return [solver, f"{int(np.isfinite(found).sum())} of {len(rows)}",
            f"{median:.3g}" if np.isfinite(median) else typical,
            f"{worst:.3g}" if np.isfinite(worst) else f"not within {limit:g}", of_best,
            f"{np.median(passes):.3g}" if passes else "–"]


def problem_lines(loss, by_solver, options):
    """Lines of one loss, set and penalty, a solver each; who is not there is a line that says so."""
    ran = {solver: rows for solver, rows in by_solver.items() if any("longest" in row for row in rows)}
    medians = {solver: float(np.median([seconds_of(row) for row in rows])) for solver, rows in ran.items()}
    late = {solver: [row["longest"] for row in rows if not np.isfinite(seconds_of(row)) and not stands_still(row)]
            for solver, rows in ran.items()}
    waited = {solver: float(np.median(seconds)) for solver, seconds in late.items() if seconds}
    for solver in solvers_of(loss, options):
        if solver in ran:
            yield line_of(solver, by_solver[solver], options.time_limit, ratio(solver, medians, waited))
            continue
        if solver in by_solver:
            why = by_solver[solver][0]["end"]
        else:
            absence = PEERS[loss][solver].absence()
            why = f"left out: {absence}" if absence else "not measured yet"
        yield [solver, "–", why, "–", "–", "–"]


def table_of(loss, rows, options):
    """All sets and penalties of one loss."""
    lines = []
    for (data, l2), own in groups(rows, "data", "l2").items():
        n, m = own[0]["shape"]
        name = f"{data}, {n:,} x {m:,}{', CSR' if own[0]['stored'] == 'sparse' else ''}"
        lines += [[name, f"{l2:g}", *line] for line in problem_lines(loss, groups(own, "solver"), options)]
    seeds = ", ".join(map(str, options.seeds))
    return Table(f"Seconds, median and worst over the seeds {seeds}; ratio: of medians, to the best of the other "
                 "packages; passes or iterations of the runs that arrived",
                 ("set", "l2", "solver", "reached", "median s", "worst s", "ratio", "passes"), lines)


def circumstances(rows, threads):
    """The machine, what ran beside the race, and how exact the optima are."""
    yield from machines(rows)
    load = [row["load"] for row in rows if "load" in row]
    if load:
        cores = rows[0]["machine"]["cores"]
        beside = "Little else ran beside it."
        if threads == 1:
            beside = ("Seconds are the processor's, to which other work adds what it takes from caches and memory: "
                      "compare rows of one problem.")
        elif np.median(load) > cores:
            beside = ("**Other work ran beside it**: these are no figures to quote. `cmargin` and `cmargin-certified` "
                      "are often the very same fit, and show how far two of its rows may be apart.")
        yield (f"- Load average before the rows, this race included: median {np.median(load):.1f}, highest "
               f"{max(load):.1f}, on {cores} cores. {beside}")
    gaps = [row["gap"] for row in rows if row.get("gap") is not None and np.isfinite(row["gap"])]
    if gaps and load:
        yield (f"- Largest certified gap of what was taken for an optimum: {max(gaps):.0e}; the lowest objective that "
               f"anybody found, relative to it: {min(row.get('lowest', np.inf) for row in rows):+.0e}.")


def text_of(rows, open_ends, options, command, picture):
    """The whole page."""
    lines = [f"# {TITLE}", "", f"Made by `{command}`; threads: {options.threads}; {options.time_limit:g} s for one "
             "run of a solver; one that needs longer has a line that says so. How to read it: doc/race.md.", ""]
    if options.quick:
        lines += ["**A quick run on small data: it shows that the race runs, not who is fast.**", ""]
    for sentence in open_ends:
        lines += [f"**Not all is here: {sentence.removeprefix('race: ')}**", ""]
    lines += ["## Setting", "", SETTING, "", *circumstances(rows, options.threads), ""]
    if picture:
        lines += ["## Performance profiles", "", f"![Share of problems over the factor to the quickest]({picture})", "",
                  "Higher and further left is better; where a curve ends below 1, the rest was not reached in time "
                  f"(`{command}`).", ""]
    for loss, own in groups(rows, "loss").items():
        lines += [f"## {loss.replace('_', ' ').capitalize()}", "", *markdown(ranking(own)),
                  *markdown(table_of(loss, own, options))]
    return "\n".join(lines)


def whole(path, write):
    """``write(part)``, then the part in place of ``path``: whole or not at all."""
    part = path.with_name(path.name + ".part")
    write(part)
    os.replace(part, path)


def write_page(folder, stem, rows, open_ends, options, command):
    """STEM.md and, where matplotlib is there, STEM.png; the page's path."""
    folder, picture = Path(folder), None
    if rows and find_spec("matplotlib") is not None:
        picture = f"{stem}.png"
        whole(folder / picture, lambda part: draw(rows).savefig(part, dpi=80, format="png"))
    page = folder / f"{stem}.md"
    whole(page, lambda part: part.write_text(text_of(rows, open_ends, options, command, picture), encoding="utf-8"))
    return page
