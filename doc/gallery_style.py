"""What every figure of the gallery has in common."""

import matplotlib


def reset(gallery_conf, fname):
    matplotlib.rcParams.update({
        "figure.figsize": (6.4, 4.0), "figure.constrained_layout.use": True, "savefig.dpi": 120,
        "font.size": 11, "axes.spines.top": False, "axes.spines.right": False,
    })
