from spack_repo.pagewise.build_systems.kernels import LibraryProgramsPackage

from spack.package import *


class PagewiseFft(LibraryProgramsPackage):
    """Fourier transforms with FFTW's interface, in one configuration of library and pages."""

    needs = "fftw"
    virtual = "fftw-api"

    depends_on("fftw-api@3")
