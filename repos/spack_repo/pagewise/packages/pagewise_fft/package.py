from spack.package import *
from spack_repo.pagewise.build_systems.kernels import LibraryProgramsPackage


class PagewiseFft(LibraryProgramsPackage):
    """Fourier transforms with FFTW's interface, in one configuration of library, pages and compiler."""

    needs = "fftw"
    virtual = "fftw-api"

    depends_on("fftw-api@3")
