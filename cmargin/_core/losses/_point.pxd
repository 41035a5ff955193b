"""What every loss says of itself: numbers at one margin, and facts that hold at all."""


cdef struct loss_t:              # a loss: which one, and its parameters
    int id                       # a `loss_id`
    double a                     # width of the smoothed hinge, level of margin pursuit; e, q of a residual's losses
    double b                     # scale of margin pursuit


cdef inline loss_t loss_of(int id, double a, double b) noexcept nogil:
    cdef loss_t loss
    loss.id, loss.a, loss.b = id, a, b
    return loss


cdef struct point:
    double value
    double slope
    double curvature


cdef struct loss_facts:
    const char *name
    double at_zero               # F(0), its size where it is negative; NaN: of no use to anybody
    double largest_curvature     # F''(0), the largest F'' there is; NaN: it has none, or it depends on parameters
    double steepest              # root mean square slope, at most, where the mean loss is 1; NaN without a dual
    double dual_largest          # dual variables a = -F'(z) lie between `dual_smallest` and this; 0: there is no dual
    double dual_bend             # the gain of one is a - dual_bend a^2 / 2; NaN: it is not of that kind
    bint calibrated              # 1 + F' is the posterior of the class                                   BSN, table 1
    bint smooth                  # Newton's method takes it as it is: it needs no smoothing
    bint discontinuous           # its curvature is, somewhere
    double dual_smallest         # 0 of losses that fall everywhere, those of a margin


cdef inline bint pulls_either_way(const loss_facts *facts) noexcept nogil:
    # whether it has a slope wherever it has no curvature, up to one size to either side
    return facts.dual_smallest < 0 and facts.dual_largest < 1e300
