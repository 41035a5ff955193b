"""What every ``history_`` has, whatever the method: a dict of columns of one length, in the order of time."""

# class      place of the problem in ``coef_`` that the entry is about; -1: of all together
# passes     reads of the data by then, in reads of all rows: spent on that problem, or by the fit
# seconds    by then, without what a callback took
# objective  what is minimised; of stochastic passes the mean loss that they met
SHARED = ("class", "passes", "seconds", "objective")
