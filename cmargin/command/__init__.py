"""``cmargin fit``, ``predict`` and ``evaluate``: a classifier for one's own data, from a shell.

    options    what can be asked for; imports nothing heavy, so that ``cmargin --help`` is quick
    guard      exit codes, and errors in one sentence
    data       rows and labels out of svmlight, .npz, .npy, folders of arrays
    tables     and out of tables with a column of labels: CSV and Parquet
    methods    the estimators by their names, and their parameters
    model      what a model file holds
    progress   a bar on a terminal, nothing elsewhere
    run        the three commands
    report     what is said of a model on some rows, as numbers and as text
    page       the same as one HTML page with plots
"""
