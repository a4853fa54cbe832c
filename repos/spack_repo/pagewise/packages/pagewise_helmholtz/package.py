from spack.package import *
from spack_repo.pagewise.build_systems.kernels import EosUserPackage


class PagewiseHelmholtz(EosUserPackage):
    """The equation of state of degenerate matter over rows of zones, in one configuration of pages,
    prefetching and compiler.
    """

    variant(
        "prefetch",
        default="hardware",
        values=("hardware", "compiler", "software", "block"),
        multi=False,
        description="Prefetching of the table: by the hardware, the compiler, the source ahead or by blocks",
    )

    mini = "helmholtz"
    own_parts = ("hdf5", "mini/helmholtz")
