"""A lower bound of the penalised multinomial objective from the probabilities of one point.

    P(W, b) = (1/N) sum_i s_i [ln sum_c exp(h_c(x_i)) - h_{y_i}(x_i)] + (l2/2) |W|^2,   h_c(x) = <w_c, x> + b_c

For any p_i of the simplex, ln sum exp h >= <p, h> + H(p), H the entropy. So for all W, b

    P(W, b) >= (1/N) sum_i s_i [H(p_i) + <p_i - e_{y_i}, h(x_i)>] + (l2/2) |W|^2
             = E - <W, V> - <b, r> + (l2/2) |W|^2
      with  E = (1/N) sum s_i H(p_i),  V = (1/N) sum s_i (e_{y_i} - p_i) x_i',  r = (1/N) sum s_i (e_{y_i} - p_i)

whose least value over W is at W = V / l2; over b it is finite only for r = 0. Hence D = E - |V|^2 / (2 l2) is below
every P(W, b) where r = 0 (no condition without intercept). With the p_i of a point (W, b) and r = 0 the gap is
P - D = |dP/dW|^2 / (2 l2).
Where r is not 0 to the last digit, rows q are mixed in: p' = (1 - t) p + t q, with q = share + ((1 - t)/t) r the same
for all rows. p' has r' = (1 - t) r + t (share - q) = 0; q is a point of the simplex as soon as
t / (1 - t) >= max_c (-r_c / share_c). H is concave, so E' >= (1 - t) E + t H(q), and V' = (1 - t) V + t V_q with
V_q = (1/N) sum s_i (e_{y_i} - q) x_i', all known without another read of the rows.
"""

import numpy as np


def dual_point(entropy, gradient, class_sums, share, intercept):
    """E and -V of a dual point with r = 0, from sums at the p_i of one point: D is E - |V|^2 / (2 l2) for any l2.

    ``gradient`` (n_columns, n_classes) is the risk's, -V', and with an intercept -r in the last row; ``class_sums``
    (n_features, n_classes) is (1/N) sum_i s_i x_i e_{y_i}'; ``share`` (n_classes,) are positive and add up to 1.
    """
    if not intercept:
        return entropy, gradient
    slope = gradient[-1] - gradient[-1].mean()                # -r: it sums to 0 but for rounding
    odds = max(np.max(slope / share), 1e-300)                 # t / (1 - t)
    t = odds / (1 + odds)
    q = np.maximum(share - slope / odds, 0.0)
    known = q[q > 0]
    mixed = (1 - t) * gradient[:-1] + t * (np.outer(class_sums.sum(axis=1), q) - class_sums)
    return (1 - t) * entropy - t * np.sum(known * np.log(known)), mixed
