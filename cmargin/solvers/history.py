"""What every ``history_`` has, whatever the method: a dict of columns of one length, in the order of time."""

# class      place of the problem in ``coef_`` that the entry is about; -1: of all together
# passes     reads of the data by then, in reads of all rows: spent on that problem, or by the fit
# seconds    by then, without what a callback took
# objective  what is minimised; of stochastic passes the mean loss that they met
SHARED = ("class", "passes", "seconds", "objective")

# The columns of each method, in the order in which its solver fills them. "class" is added to SmSVM's at the end.
SMSVM = ("passes", "seconds", "seconds_look", "seconds_system", "seconds_search", "objective", "gap", "step",
         "smoothing", "active_features", "active_rows")
PURSUIT = ("pass", "class", "passes", "seconds", "seconds_steps", "seconds_trace", "objective", "gradient_norm", "step",
           "scale")
SLND = ("pass", "class", "passes", "seconds", "seconds_hessian", "seconds_whiten", "seconds_steps", "objective",
        "error", "step", "visits")
MULTINOMIAL_OPTIMUM = ("class", "passes", "seconds", "objective", "gap", "products")


def add_entry(history, values):
    """A value more for every column, in their order."""
    for column, value in zip(history.values(), values, strict=True):
        column.append(value)
