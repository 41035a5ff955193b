"""The cheap linear model of all classes where rows are in files: made from a sample, its objectives left open."""

from cmargin.data.memory.shared_start import SharedStart


class FileSharedStart(SharedStart):
    """It is wanted when the time is over, and its objectives would take another read of everything."""

    def evaluate(self, out_of_time):
        """Nothing: objectives that are not known are infinite."""
