"""Every number that decides which way a fit goes: what stages cost, and from where on another one is tried.

A number stands beside its unit, under one sentence that says what it decides and where that was measured: a page of
doc/lab-notebook and the words by which to find the place there, or the command that prints it. Numbers that only tune a
formula stand beside that formula. What is decided by these is in `cmargin.solvers.prices` and `cmargin.solvers.plan`.
None of them is a time: the way is the same on every machine and with any number of threads.
"""

# ---------------------------------------------------------------- what Newton's method costs

# Fits of the hinge on dense rows of so many columns take hardly more time than the reads of their rows (smsvm.md,
# "Dense rows").
CHEAP_HESSIAN_COLUMNS = 128      # columns
# A fit of the hinge on dense rows of at most `CHEAP_HESSIAN_COLUMNS` columns is priced as so many reads, of which a
# trial of the dual takes `DUAL_SHARE` at most (smsvm.md, "Few columns").
NARROW_NEWTON_READS = 40         # reads of X
# A fit by conjugate gradients, with more columns than a factor is made of, is priced as so many reads, of the order
# of what sparse rows took (smsvm.md, table under "Of CSR rows of more than 4,000 columns").
CG_NEWTON_READS = 1000           # reads of X
# For (smooth loss, sparse rows), a fit takes so many evaluations with curvature, and one costs a fixed part, a part
# for each entry of a row, and a part for the factor: fitted to measured times on drawn sets within a third of them
# (smsvm.md, "Fewer columns" and "Dense rows").
NEWTON_COST = {                  # evaluations; reads of X
    (False, False): (16, 5, 0.025, 0.02), (False, True): (10, 0, 0.36, 0.01),
    (True, False): (6, 0.4, 0.02, 0.02), (True, True): (6, 1, 0.04, 0.009)}
# Evaluations of all rows after a subset, of dense and of sparse rows; only dense ones were measured (smsvm.md, "From
# 160 rows a column on").
EVALUATIONS_AFTER_SUBSET = (2, 4)        # evaluations
# Making X' = QR costs the first number for every row; a fit in that many unknowns costs the others for each
# evaluation: a fixed part, and one for every row (asv_benches/compare_products.py).
REDUCTION_COST = (0.2, 5, 0.045)  # reads of X

# ---------------------------------------------------------------- Newton steps by conjugate gradients

# Products of dense rows that fit into the cache take half the time they take elsewhere, the curvature does not
# (smsvm.md, "Steps of a smooth loss begin by products").
CACHED_BYTES = 16_000_000        # bytes
# A trial of fewer products a step is not made: steps of four took 0.40 to 2.4 times as long, 1.03 in the mean
# (smsvm.md, "In place of a subset"). Where a sample can precondition products, those scaled by the diagonal are tried
# for as many reads beyond what its curvature costs (smsvm.md, "four beyond what the sample costs").
FEWEST_PRODUCTS = 4              # products per step
# No step takes more products, however dear the curvature is, nor with linear_solver="cg": a bound that was not measured
# by itself; asv_benches/compare_products.py prints such fits.
MOST_PRODUCTS = 100              # products per step
# A step on trial may take the first part of ``max_passes``, and all of a trial as much as so many such steps, so that
# a trial in vain leaves passes for other steps (smsvm.md, "All of a trial may read ten such steps").
TRIAL_STEPS = 10                 # steps
# All of a trial of products may take this part of ``max_passes``: the rest is for steps by a factor (smsvm.md, "All
# of a trial may read ten such steps").
TRIAL_SHARE = 0.3                # share of max_passes
# Summing x x' of sparse rows costs so many reads of their columns for every entry of a row (asv_benches/compare_l1.py
# --part text).
OUTER_PRODUCT_READS = 0.2        # reads per entry of a row
# A block of no more columns is cheap with its factors: with l1 it holds all of them, used or not, and steps on sparse
# rows do not go by columns (smsvm.md, "With l1, logistic loss or squared hinge").
L1_BLOCK_UP_TO_COLUMNS = 256     # columns
# Rows per column of the sample whose curvature preconditions products: 3 to 12 take as long, 3 fail on hard problems
# (smsvm.md, "Rows a column").
SAMPLE_ROWS_PER_COLUMN = 8       # rows per column
# The curvature of all dense rows costs so many reads for each column, over the bytes of a number (smsvm.md, "The
# curvature of a sample of the rows").
HESSIAN_READS_PER_COLUMN = 0.2   # reads x bytes per column
# A step by conjugate gradients that a sample preconditions costs so many reads besides the sample's curvature
# (asv_benches/compare_samples.py).
SAMPLED_STEP_READS = 4           # reads of X
# A sweep of the dual over dense rows, by one thread, takes as long as so many reads by all threads (smsvm.md, "The
# dual is priced against such steps").
SWEEP_READS = 2.3                # reads of X

# ---------------------------------------------------------------- paths of penalties

# A step on the squared hinge that is shorter begins a path of l2 (smsvm.md, "Squared hinge: short steps begin a path
# of penalties": 2,804 passes without, 771 with it). One by products within bounds is the last of its kind: 0.5 would
# leave them on texts that they fit in 15 ms for 598 (doc/lab-notebook/smsvm.md, "Products within bounds").
L2_PATH_FROM_STEP = 0.3          # share of a full step
# A path of l2 begins where the gap is no smaller, and goes on to the next l2 once the gap at the one is (smsvm.md,
# "Squared hinge: short steps begin a path of penalties": with 0.3, 654 passes for 579).
L2_PATH_GAP = 0.1                # relative duality gap
# A path of l1 begins at w = 0 where there are no more rows a column than this, with a loss whose curvature is smooth,
# and with one of discontinuous curvature: with more the user's weight is as near (smsvm.md, "Rows in plenty").
L1_PATH_UP_TO_ROWS_PER_COLUMN = (1, 2)   # rows per column

# ---------------------------------------------------------------- the dual first

# Dense rows of fewer columns than this are fitted by Newton's method in less than a trial of the dual takes
# (smsvm.md, "Few columns").
DUAL_FROM_COLUMNS = 16           # columns
# Dense rows of at most `CHEAP_HESSIAN_COLUMNS` columns that store fewer numbers are fitted by Newton's method in less
# than a trial of the dual takes (smsvm.md, "Few columns").
DUAL_FROM_ENTRIES = 250_000      # stored numbers
# The dual of dense rows of at most `CHEAP_HESSIAN_COLUMNS` columns is first checked after so many reads, since a
# check after twelve sweeps made failures take 1.9 times as long (smsvm.md, "Few columns").
NARROW_FIRST_CHECK = 3.0          # reads of X
# Fits of dense rows that are allowed fewer passes have none for a trial of the dual, which takes three
# (tests/solvers/test_dense_dual.py).
DUAL_FROM_MAX_PASSES = 10        # passes
# Sparse rows of `DUAL_FROM_COLUMNS` to `CHEAP_HESSIAN_COLUMNS` columns try the dual where the mean of C |x|^2 is at
# most this, for heavier ones it takes up to 4.5 times as long (smsvm.md, "CSR rows of 16 to 128 columns").
LIGHT_SPARSE_ROWS = 2.0          # mean C |x|^2
# Dense rows that are many beside their columns try the dual where the mean of C |x|^2 is at most this: above it fits
# were 1.05 to 4.3 times as quick without in 38 of 40 cases (smsvm.md, "Of many dense rows the hinge").
LIGHT_MANY_ROWS = 10.0           # mean C |x|^2
# Dense rows whose Newton steps go by products of a sample try the dual where the mean of C |x|^2 is at most this
# (smsvm.md, "The dual is priced").
LIGHT_SAMPLED_ROWS = 1.0         # mean C |x|^2
# The mean of C |x|^2 is taken over so many dense rows, evenly spread (smsvm.md, "Of many dense rows the hinge").
ROWS_WEIGHED = 1024              # rows
# The dual is tried first where Newton's method is priced higher than this (smsvm.md, "CSR rows of a few hundred
# columns"), and dense rows with more columns than rows where fewer unknowns are priced higher than the other number
# (asv_benches/compare_dual.py --stored short).
DUAL_FROM_NEWTON_READS = (40, 20)        # reads of X
# The dual is given up after this part of Newton's price (smsvm.md, "Dense rows"); that of a smooth loss is tried where
# it is foreseen to cost no more than this part (asv_benches/compare_dual.py).
DUAL_SHARE = 0.6                 # share of Newton's price
# On trial, which is what the dual of a loss with kinks and that of alike rows are, it is asked for its rate after this
# part of the reads that it may take (smsvm.md, "One rule for all trials").
DUAL_TRIAL_SHARE = 0.15          # share of the reads allowed
# A trial of the dual on which hardly a row has come to rest is left after this part of the reads before its first
# check, without the check (smsvm.md, "Few columns").
DUAL_HOPELESS_FROM = 0.6         # share of the reads before the first check
# Where sweeps of the dual would need so many more at their rate, each ends at the best point along the last moves,
# whatever the vectors of columns for it cost (smsvm.md, "The last moves of the dual").
SWEEPS_LEFT_FOR_MOVES = 15       # sweeps
# A gap that the dual was given up with, of dense and of sparse rows, above which Newton's method begins anew and not
# at the point of the sweeps (smsvm.md, "from the point of 8 sweeps it took").
GAP_TO_BEGIN_ANEW = (0.1, 0.5)   # relative duality gap

# ---------------------------------------------------------------- paths of a smooth loss

# Fits of a path leave a model of p x p numbers, by which the next ones are foreseen, where it takes no more than this
# part of the entries of X: some ten are kept, a few percent of X (smsvm.md, "Fits of a path of a smooth loss,
# foreseen").
MODEL_UP_TO_PART = 0.005         # share of the entries of X

# ---------------------------------------------------------------- many problems on the same dense rows

# The Gram matrix of dense rows is made of up to so many rows, which is 200 MB in double precision (smsvm.md, "Gram
# matrix of dense rows").
GRAM_UP_TO_ROWS = 5000           # rows
# The Gram matrix of dense rows is made of up to so many rows for each column: above, evaluating X costs less than the
# products of rows. First for several fits of each problem, of which the next has little to do, then for one; with the
# hinge, and with a smooth loss, where more rows have a slope (smsvm.md, "Gram matrix of dense rows").
GRAM_ROWS_PER_COLUMN = ((10, 5), (4, 2.5))         # rows
# The Gram matrix of dense rows is made of up to so many rows for each fit that uses it, as fewer fits do not pay for
# it. More rows than may have one go by products of those that a problem lists, up to the second number for each
# problem, as a class of more rows lists too many (smsvm.md, "Gram matrix of dense rows", "Products of listed rows").
GRAM_ROWS_PER_FIT = (30, 100)    # rows
# The Gram matrix of dense rows is made for at least so many problems: where there are few classes, each of them has
# many rows between their bounds (smsvm.md, "Gram matrix of dense rows").
GRAM_FROM_PROBLEMS = 5           # problems

# ---------------------------------------------------------------- the dual of a smooth loss

# A smooth loss tries the dual from so many columns on; rows of fewer take up to twice as long by it (smsvm.md, "Fewer
# columns, 16,000 x 20"). One class begins with its own from as many on (smsvm.md, "One class by sweeps of its dual").
SMOOTH_DUAL_FROM_COLUMNS = 48    # columns
# A smooth loss tries the dual of dense rows from so many stored numbers on; fits of fewer are as quick as the choice
# (asv_benches/compare_dual.py).
SMOOTH_DUAL_FROM_ENTRIES = 400_000       # stored numbers
# The dual of a smooth loss, and of dense rows that would have fewer unknowns, is given up after so many times Newton's
# price (asv_benches/compare_dual.py).
SMOOTH_DUAL_SHARE = 1.5          # share of Newton's price
# Sparse rows of more columns than a factor is made of have the dual of a smooth loss on trial where their mean ratio of
# |x|^2 to the ridge and to what a row has in columns of its own is larger than the first number, and than the second
# times the root of kappa, by which the reads of products go (smsvm.md, "Words that rows share").
ALIKE_FROM_RATIO = (35.0, 5.0)   # ratio; ratio per root of kappa
# A sweep over a sample has so many dense rows a column at least (smsvm.md, "The squared hinge by the dual").
SWEPT_ROWS_PER_COLUMN = 5        # rows per column
# A sweep over a sample has one of so many dense rows at least (smsvm.md, "The squared hinge by the dual").
ROWS_PER_SWEPT_ROW = 16          # rows
# The ratio of |x|^2 to the ridge is taken over so many sparse rows, not swept (asv_benches/compare_dual.py).
SPARSE_ROWS_WEIGHED = 500        # rows
# Sweeps of the dual of a smooth loss take SWEEPS_FIRST + SWEEPS_EACH kappa v reads, kappa the mean |x|^2 over the
# mean ridge and v the part of the rows that have no margin of 1: 8 to 45 reads where 9.8 to 40 were counted
# (smsvm.md, "The squared hinge by the dual").
SWEEPS_FIRST = 6.0               # reads of X
SWEEPS_EACH = 5.0                # reads of X per kappa v
# Rows without a margin of 1 are few, whatever kappa, if they are this part of a sample with a row a column, and of a
# larger one less as its root (smsvm.md, "The squared hinge by the dual": 0.13 and 0.19 of five rows a column).
FEW_WITHOUT_MARGIN = 0.4         # share of rows
# Where few rows are without a margin of 1, so many reads show whether they are in clusters, which take 6 to
# 14 (smsvm.md, "Few rows without a margin").
SHORT_TRIAL_READS = 20           # reads of X
# Sparse rows of up to so many a column are few: the dual takes 0.79 of the time whatever the penalty (smsvm.md, "Few
# sparse rows and the squared hinge"). Where nothing else ends sooner it is left with so many of ``max_passes`` to go,
# or half of them, for products to end what it does not (smsvm.md, "Words that rows share").
FEW_SPARSE_ROWS = (2.0, 100)     # rows per column; passes
# Sparse rows that are more than `FEW_SPARSE_ROWS` allows are sampled from so many entries on, since a
# sample costs as much as a small fit (smsvm.md, "Few sparse rows and the squared hinge").
WEIGHED_FROM_ENTRIES = 50_000    # stored numbers
# Beside the dual of a smooth loss on sparse rows, Newton's method is priced at so many reads at most, about what
# products take (smsvm.md, "Few sparse rows and the squared hinge" and "Of CSR rows of more than 4,000 columns the dual
# reads 120 times at most").
SPARSE_NEWTON_READS = 200        # reads of X

# ---------------------------------------------------------------- more columns than rows

# X' = QR is made of so many rows at most, as R is square and dense, 32 MB then; asv_benches/compare_products.py
# prints such fits.
REDUCE_UP_TO_ROWS = 2000         # rows
# X is copied, into other rows, columns or unknowns, up to 400 MB of float64 (doc/methods/smsvm.md).
COPY_UP_TO_ENTRIES = 50_000_000  # numbers
# Newton's system is solved by a factor up to so many columns, whose block and p^3 / 3 operations are a second or two
# (smsvm.md, "Fewer columns").
FACTOR_UP_TO_COLUMNS = 4000      # columns

# ---------------------------------------------------------------- a subset of the rows first

# A subset of the rows is solved first from so many rows on: with fewer, four to six evaluations are all that a fit
# takes (smsvm.md, "Smaller subsets do not pay").
SUBSET_FROM_ROWS = 20_000        # rows
# Part of the rows that is the subset: with 5 and 15 % the worst of three seeds took 17 and 11.6 passes for 9.2
# (smsvm.md, "After a subset, all rows start five times wider").
SUBSET_SHARE = 0.1               # share of rows
# So many rows measure the columns before a subset is drawn, for long rows to be chosen more often; ten
# times as many change nothing (smsvm.md, "Rows of the subset are chosen by a hash").
PILOT_ROWS = 2000                # rows
# A subset of fewer rows a column says little about all rows (smsvm.md, "Smaller subsets do not pay").
SUBSET_ROWS_PER_COLUMN = 20      # rows per column
# For a loss that needs no smoothing, a subset of so many rows a column says enough (smsvm.md, "Smaller subsets do not
# pay": 16 a column for 20). With so many in the subset, few evaluations of all rows follow it, and dense rows of the
# hinge try the dual only where they are light (smsvm.md, "From 160 rows a column on").
SMOOTH_SUBSET_ROWS_PER_COLUMN = 16       # rows per column
# The subset is left at this smoothing; later is worse, as its own noise is fitted (smsvm.md, "After a subset").
SUBSET_SMOOTHING_END = 0.02      # smoothing
# All rows begin so many times wider than the subset was left, so that rows that only the subset has settled may still
# move (smsvm.md, "After a subset, all rows start five times wider"); residuals, no rare class among them, half as wide
# (smsvm.md, "After a subset of a regression").
WIDER_AFTER_SUBSET = {"hinge": 5.0, "residuals": 2.0}     # times the smoothing that the subset was left at
# Steps to the optimum of the rows near the hinge are taken from so many rows on: 24,000 take longer with them, 48,000
# less (smsvm.md, "fewer than 40,000 rows").
WORKING_SET_FROM_ROWS = 40_000   # rows
# A fit that begins at known weights begins with this smoothing at most (tests/estimators/test_warm_starts.py).
WARM_SMOOTHING = 0.1             # smoothing

# ---------------------------------------------------------------- margin pursuit

# Newton steps of margin pursuit go by conjugate gradients above so many columns (doc/methods/margin_pursuit.md).
PURSUIT_FACTOR_UP_TO_COLUMNS = 2000      # columns
# Margin pursuit leaves a subset at this gradient: below it the subset's own noise is fitted
# (doc/methods/margin_pursuit.md).
PURSUIT_SUBSET_GRADIENT = 0.03   # gradient norm, relative to w = 0

# ---------------------------------------------------------------- threads and problems side by side

# X of fewer numbers for all classes together is fitted by one thread: such a fit takes a millisecond, two threads
# gain a tenth of it, and one may wait 4 ms for the other beside busy programs; compare `asv_benches/compare_fits.py`.
THREADS_FROM_ENTRIES_OF_ALL_CLASSES = 100_000    # numbers
# So many problems are begun for every thread, and four times as many, up to the other number, whenever they are done
# before a slice is over, since threads wait for the last (smsvm.md, "The loop is compiled, too").
PROBLEMS_PER_THREAD = 4          # problems
MOST_PROBLEMS_PER_THREAD = 64    # problems
# The last problems take turns at all threads where there are so many threads for each (smsvm.md, "The last of several
# problems has all threads").
THREADS_PER_LAST_PROBLEM = 2     # threads

# ---------------------------------------------------------------- SLND: the loss, batches and what follows the passes

# loss="auto" is multinomial for so many classes at any cost (multinomial.md, "Thousands of classes").
MULTINOMIAL_CLASSES = 2000       # classes
# For more than `MULTINOMIAL_CLASSES` classes loss="auto" is multinomial while a product of all rows with all classes
# takes no more: a pass of 40 s on a core (multinomial.md, "Thousands of classes").
MULTINOMIAL_MULTIPLY_ADDS = 1e12  # multiply-adds
# For more than `MULTINOMIAL_CLASSES` classes loss="auto" is multinomial while the weights are no more numbers, of
# which four arrays are in memory (multinomial.md, "Thousands of classes").
MULTINOMIAL_WEIGHTS = 2e8        # numbers
# A batch of SLND has so many dense or sparse rows, as a BLAS wants them, where a pass has the first of
# `BATCHES_OF_A_PASS` (doc/methods/slnd.md, "Batches").
DENSE_BATCH = 128                # rows
SPARSE_BATCH = 16                # rows
# Batches of SLND are halved, down to the least, while a pass has fewer than the first number of them; from
# `SPARSE_BATCH` rows on, fewer than the second (doc/methods/slnd.md, "Batches"). Over ranks and workers the weights are
# averaged after every batch where a pass of a place has no more than the second (places.md, "SLND's weights are
# averaged").
BATCHES_OF_A_PASS = (128, 64)    # batches
LEAST_BATCH = 2                  # rows
# Multinomial passes over so many dense rows in memory are taken by so many walkers side by side, whatever the number
# of threads: batches are too little work to be shared out, and 16 walkers lost up to 0.17 points of a first pass over
# 400,000 rows, eight 0.15 over 250,000 (multinomial.md, "Walkers side by side").
WALKERS = {900_000: 16, 400_000: 8}      # rows: walkers
# That is so for at most so many classes; a walker's batch has so many rows, and the mean of the weights is taken after
# so many batches of each (multinomial.md, "Walkers side by side").
WALKER_SIZES = (16, 16, 16)      # classes; rows; batches
# On a device a batch of SLND costs the launches of its operations, so that it is doubled up to the first number while
# a pass has so many batches as the second says (asv_benches/compare_device.py).
DEVICE_BATCH = (1024, 256)       # rows; batches
# A path of penalised optima follows the multinomial passes, and each of several parts of the rows judges it, while a
# product with all rows takes no more; up to the second number one part does where rows are few: then passes lose up to
# four points, and with more rows they do well (multinomial.md, "Passes of few rows are only a start").
PATH_FLOPS = (3e7, 1e9)          # operations
# Rows too few to hold any out for multinomial passes get a penalised optimum while a product takes no more, a second
# (doc/methods/slnd.md).
OPTIMUM_FLOPS = 3e10             # operations
# So many columns count at least in what a product for a penalised optimum takes: the scores of all rows are in
# memory, 120 MB (doc/methods/slnd.md).
OPTIMUM_COLUMNS = 500            # columns
# So many rows can choose the strength of a penalised optimum where columns are fewer; some 20 lost a point on wine
# (multinomial.md).
OPTIMUM_FROM_ROWS = 40           # rows

# ---------------------------------------------------------------- SLND: the second moment, and its rank

# The second moment of SLND is that of so many rows, as are the units of its columns and those of margin pursuit, or of
# so many for each of its pairs where the tail is dropped (doc/methods/slnd.md, "Rank and rows of H when not given").
MOMENT_ROWS = 1000               # rows
MOMENT_ROWS_PER_PAIR = 20        # rows per eigenpair
# rank="auto" takes no more pairs, where the tail is scaled and where it is dropped (doc/methods/slnd.md, "Rank and rows
# of H when not given").
AUTOMATIC_RANK_UP_TO = (100, 200)        # eigenpairs
# Where the tail is dropped, rank="auto" takes eigenvalues of at least this part of the largest, and no more of them
# than there are so many rows for each (doc/methods/slnd.md, "Rank and rows of H when not given").
DROPPED_FLOOR = 1e-4             # share of the largest eigenvalue
ROWS_PER_DROPPED_PAIR = 4        # rows per eigenpair

# ---------------------------------------------------------------- SLND, multinomial: trials for rank, step and passes

# Of every class this share is held out, or what gives so many rows in all; a tenth chose a step of 16 on digits once
# in ten seeds, a fifth never (multinomial.md, "Rank, step and passes").
HELD_SHARE = 0.2                 # share of rows
HELD_MOST = 2000                 # rows
# With fewer rows to hold out, multinomial passes hold none out, and nothing is chosen by them (multinomial.md, "Rank,
# step and passes").
HELD_LEAST = 20                  # rows
# A trial is trained on so many rows, or so many for each class, with four of which steps are three times too long
# (multinomial.md, "Rank, step and passes").
TRIAL_ROWS = 4096                # rows
TRIAL_ROWS_PER_CLASS = 10        # rows per class
# A multinomial trial takes so many passes: two order ranks and steps as all rows do, one asks for steps twice too
# long (multinomial.md, "Rank, step and passes").
TRIAL_PASSES = 2                 # passes
# A multinomial trial holds other rows out in their stead, in 1 / `HELD_SHARE` splits at most, until so many are judged
# (multinomial.md, "Rank, step and passes").
TRIAL_JUDGED = 200               # rows
# The relative step of multinomial passes is doubled and halved from the first, between the others; 16 and 32 have the
# same loss on sector (multinomial.md, "Rank, step and passes").
MULTINOMIAL_FIRST_STEP = 2.0     # relative step
MULTINOMIAL_STEP_LIMITS = (1 / 64, 16.0) # relative steps
# A multinomial step twice as long must be better by so much, or chance takes it at times; within as much the errors
# choose between the strengths of penalised optima (multinomial.md, "Rank, step and passes").
STEP_STANDARD_ERRORS = 2.0       # standard errors
# The rank that multinomial trials try beside the knee of the spectrum (multinomial.md, "Rank, step and passes").
LOW_RANK = 1                     # rank
# The relative step of multinomial passes where no rows can be held out (multinomial.md, "Rank, step and passes").
MULTINOMIAL_STEP = 1.0           # relative step
# With fewer multinomial passes allowed, none is spent on finding out how many are best (multinomial.md, "Rank, step
# and passes").
CHOSEN_PASSES_FROM = 4           # passes
# Another multinomial pass follows one that lowers the held-out loss by this share, or so many that do not where few
# rows judge (multinomial.md, "Rank, step and passes").
PASS_GAIN = 1e-3                 # share of the held-out loss
PASSES_WITHOUT_GAIN = 2          # passes
# Multinomial passes over all rows follow where more than this was held out (multinomial.md, "Rank, step and passes").
REFIT_FROM_HELD_SHARE = 0.04     # share of rows

# So many Newton steps on the multinomial loss take products in single precision and solve their systems roughly;
# later ones do not, as that may be what holds them up (multinomial.md).
MULTINOMIAL_SINGLE_STEPS = 40    # steps

# ---------------------------------------------------------------- SLND, one class against the rest: trials for the step

# One class against the rest, the relative step where no class has rows to spare, from which others are tried, and
# between which they stay (one_vs_rest.md, "Automatic step").
CLASS_STEP = 0.1                 # relative step
CLASS_STEP_LIMITS = (0.0125, 6.4)        # relative steps
# One class against the rest, a trial for the step is made on so many classes, of so many positives and negatives each
# (one_vs_rest.md, "Automatic step").
TRIAL_CLASSES = 8                # classes
TRIAL_POSITIVES = 256            # rows
TRIAL_NEGATIVES = 2304           # rows
# One class against the rest, a trial for the step takes so many passes (one_vs_rest.md, "Automatic step").
CLASS_TRIAL_PASSES = 5           # passes
# One class against the rest, the standard error within which a shorter step is taken is that of so many visits at
# least: of 40 rows it excused a poor fit (one_vs_rest.md, "Automatic step").
TRIAL_VISITS = 2000              # visits

# ---------------------------------------------------------------- SLND over ranks and workers

# Over ranks and workers the weights of SLND are averaged so many times a pass (places.md, "SLND's weights are
# averaged ten times a pass").
MEANS_OF_A_PASS = 10             # means
# Classes lie unevenly over ranks or workers where more than this part of the rows of a class would have to change
# places (places.md, "Whether classes lie unevenly").
UNEVEN_SHARE = 0.2               # share of a class's rows
# One class against the rest, rows that lie unevenly and are too many to be shared have so many means a pass
# (places.md, "have 1,000 means a pass").
MEANS_OF_AN_UNEVEN_PASS = 1000   # means
# Where classes lie unevenly over ranks, every rank is given all rows up to so many bytes (places.md, "One-vs-rest,
# lists are shared out").
SHARED_BYTES = 1 << 28           # bytes
# Partitions make so many groups at most, and steps are that many times as long: with more, passes lose accuracy
# (places.md, "SLND's places are eight groups").
GROUPS_OF_PARTITIONS = 8         # groups
