"""What homes whose rows are not in memory have in common: views that only rows in memory have are refused in words."""


class RowsElsewhere:
    """A subclass has ``refuse(what)``, which raises ValueError."""

    def reduced(self):
        self.refuse("linear_solver='woodbury'")

    def dual_rows(self, intercept, free, weights, l2):
        self.refuse("linear_solver='dual'")

    def softmax_pass(self, labels, weight, n_classes, intercept, n_threads):
        self.refuse("The multinomial optimum")
