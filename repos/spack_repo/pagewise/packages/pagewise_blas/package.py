from spack_repo.pagewise.build_systems.kernels import LibraryProgramsPackage

from spack.package import *


class PagewiseBlas(LibraryProgramsPackage):
    """Matrix multiplication with a BLAS, in one configuration of library, pages and compiler."""

    needs = "blas"
    virtual = "blas"

    depends_on("blas")
