"""What comes back from other processes in place of an answer, and what their answers come to."""

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


def agreed_on(what, said, places, one):
    """ValueError that names two places and what they say, unless all say the same."""
    (first, value), *others = said.items() or [(0, None)]
    for place, other in others:
        if other != value:
            raise ValueError(f"The {places} disagree on {what}: {value!r} {one.format(first)}, {other!r} "
                             f"{one.format(place)}.")


def first_failure(every, one):
    """None where there is none; it says at which place unless all say the same. ``one``: how a place is called."""
    failed = [(place, said) for place, said in enumerate(every) if isinstance(said, Failure)]
    if not failed:
        return None
    place, first = failed[0]
    alike = len(failed) == len(every) and all(said.text == first.text for _, said in failed)
    return first if alike else first.at(one.format(place))
