from spack_repo.pagewise.build_systems.kernels import EosUserPackage

from spack.package import *


class PagewiseHelmholtz(EosUserPackage):
    """The equation of state of degenerate matter over rows of zones, in one configuration of
    pages, prefetching and compiler.
    """

    variant(
        "prefetch",
        default="hardware",
        values=("hardware", "compiler", "software", "block"),
        multi=False,
        description="Prefetching of the table: hardware, compiler, software or block",
    )

    mini = "helmholtz"
