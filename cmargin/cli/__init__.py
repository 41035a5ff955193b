"""``cmargin fit``, ``predict``, ``evaluate`` and ``convert``: a classifier on one's own data, from a shell.

    options                       what the parsers accept; imports nothing heavy, so that ``cmargin --help`` is quick
    errors                        exit codes, and errors in one sentence
    fit predict evaluate convert  one command each
    data                          rows and labels of a file; each format has its reader in `cmargin.data.files`
    tables labels                 which columns of a table are the features and the label; labels written as text
    estimators                    the estimators by their names, and their parameters
    model                         what a model file holds
    progress                      a progress bar on a terminal
    report report_labels          the numbers that ``evaluate`` reports, of one label a row and of several
    report_text report_html       the report as text and JSON, and as a page with plots
"""
