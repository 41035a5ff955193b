"""An exception that ended a run and is raised later, once what the run has come to is stored."""


class Deferred:
    """``raise deferred.taken()`` raises ``error``, once.

    A traceback holds every frame that its exception went through. If one of these had the exception among its
    variables, the two would hold each other, and with them the caller's X, until the cyclic collector runs. So they
    have this object, which lets go of the exception when it is raised.
    """

    def __init__(self, error):
        self.error = error

    def taken(self):
        error, self.error = self.error, None
        return error
