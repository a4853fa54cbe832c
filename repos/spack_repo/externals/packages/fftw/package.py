from spack_repo.externals.build_systems.site import SitePackage

from spack.package import *


class Fftw(SitePackage):
    """The site's FFTW; `extra_attributes: library:` names its file."""

    # Spack's recipes use these variants.
    variant("mpi", default=False, description="Enable MPI")
    variant("openmp", default=False, description="Enable OpenMP threads")
    variant("precision", default="float,double", multi=True, description="Precisions")

    provides("fftw-api@3")
