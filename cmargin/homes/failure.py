"""What comes back from another process in place of an answer."""

import pickle


class Interrupted(Exception):
    """A Ctrl-C that came while rows were read: what is answered then is of no use."""


class Failure:
    """An error as other processes may hear of it: of the same kind where that can be made of a sentence."""

    def __init__(self, error):
        self.text, self.kind = str(error), type(error)
        try:
            pickle.loads(pickle.dumps(self.kind))
            if str(self.kind(self.text)) != self.text:
                raise TypeError
        except Exception:
            self.text, self.kind = f"{self.kind.__name__}: {self.text}", RuntimeError

    def at(self, where):
        """The same, and where."""
        self.text = f"{self.text} ({where})"
        return self

    def error(self):
        return self.kind(self.text)
