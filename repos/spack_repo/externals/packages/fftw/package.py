from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Fftw(Package):
    """FFTW of the site; see gcc. Its file is told by `extra_attributes: library:`."""

    has_code = False

    # What recipes of Spack's ask for.
    variant("mpi", default=False, description="With MPI")
    variant("openmp", default=False, description="Threads by OpenMP")
    variant(
        "precision",
        values=("float", "double", "long_double", "quad"),
        default="float,double",
        multi=True,
        description="Of numbers",
    )

    provides("fftw-api@3")
