from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Fftw(Package):
    """The site's FFTW; see gcc. `extra_attributes: library:` names its file."""

    has_code = False

    # Spack's recipes use these variants.
    variant("mpi", default=False, description="Enable MPI")
    variant("openmp", default=False, description="Enable OpenMP threads")
    variant(
        "precision",
        values=("float", "double", "long_double", "quad"),
        default="float,double",
        multi=True,
        description="Floating-point precisions",
    )

    provides("fftw-api@3")
