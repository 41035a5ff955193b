"""Exit codes of the commands, and errors in one sentence on standard error instead of a traceback.

    0  done       1  data or model are not what they should be       2  usage       130  interrupted
"""

import os
import sys
import warnings

USAGE = ("InvalidParameterError",)               # Known by name, as this file imports nothing heavy.


def print_error(text):
    """Print one line on standard error."""
    print(f"cmargin: {' '.join(str(text).split())}", file=sys.stderr, flush=True)


def exit_status(work, *arguments):
    """Return the exit status of ``work``, or the one that stands for the error that it raised, which is printed.

    With CMARGIN_TRACEBACK=1 in the environment, errors are raised instead.
    """
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *others, **more: print_error(f"warning: {message}")
        try:
            status = work(*arguments)
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            print_error("interrupted.")
            return 130
        except BrokenPipeError:              # The reader of standard output, such as `head`, has closed it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if os.environ.get("CMARGIN_TRACEBACK"):
                raise
            print_error(f"error: {_message(error)}")
            return 2 if type(error).__name__ in USAGE else 1


def _message(error):
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}"
    if isinstance(error, (ValueError, ImportError, OSError)):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error} (CMARGIN_TRACEBACK=1 shows where)"
