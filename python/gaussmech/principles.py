"""The principles of mechanics as functions of arrays: what a motion has to satisfy.

Gauss, d'Alembert, Jourdain, Lagrange, Gibbs and Appell, Hertz, Udwadia and Kalaba say the same
thing of an acceleration; each function here computes what one of them says. All broadcast
over leading batch dimensions. `report` asks all of them about one acceleration.

In a notebook a function that is looked at without being called shows the formula that it
stands for.
"""

from .report import report
from .residuals import (
    GaussResidual,
    constraint_residual,
    dalembert_residual,
    gauss_residual,
    gibbs_appell,
    gibbs_appell_residual,
    hertz_curvature,
    jourdain_residual,
    lagrange_first_kind_residual,
    reaction,
    zwang_variation,
)
from .virtual import competitors, partition, virtual_displacements, virtual_work

__all__ = [
    "GaussResidual",
    "competitors",
    "constraint_residual",
    "dalembert_residual",
    "gauss_residual",
    "gibbs_appell",
    "gibbs_appell_residual",
    "hertz_curvature",
    "jourdain_residual",
    "lagrange_first_kind_residual",
    "partition",
    "reaction",
    "report",
    "virtual_displacements",
    "virtual_work",
    "zwang_variation",
]
