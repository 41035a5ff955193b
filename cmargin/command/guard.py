"""Exit codes of the commands, and errors in one sentence on standard error instead of a traceback.

    0  done       1  data or model are not what they should be       2  usage       130  interrupted
"""

import os
import sys
import warnings

PARAMETERS = ("InvalidParameterError",)          # by name: this file imports nothing heavy


def say(text):
    """One line on standard error."""
    print(f"cmargin: {' '.join(str(text).split())}", file=sys.stderr, flush=True)


def guarded(work, *arguments):
    """Run ``work``; its exit status, or that of what it raised. CMARGIN_TRACEBACK=1 lets errors through."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *others, **more: say(f"warning: {message}")
        try:
            status = work(*arguments)
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            say("interrupted.")
            return 130
        except BrokenPipeError:              # whoever read standard output, `head` say, has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if os.environ.get("CMARGIN_TRACEBACK"):
                raise
            say(f"error: {in_words(error)}")
            return 2 if type(error).__name__ in PARAMETERS else 1


def in_words(error):
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}"
    if isinstance(error, (ValueError, ImportError, OSError)):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error} (CMARGIN_TRACEBACK=1 shows where)"
