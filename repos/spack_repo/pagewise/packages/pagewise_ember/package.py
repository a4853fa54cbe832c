from spack_repo.pagewise.build_systems.kernels import EosUserPackage

from spack.package import *


class PagewiseEmber(EosUserPackage):
    """Block-structured hydrodynamics with adaptive refinement, in one configuration of pages,
    prefetching and compiler.
    """

    variant(
        "prefetch",
        default="hardware",
        values=("hardware", "compiler", "software"),
        multi=False,
        description="Prefetching: hardware (no instruction), compiler, or software (explicit)",
    )
    variant("mpi", default=True, description="Enable MPI")

    depends_on("mpi", when="+mpi")

    mini = "ember"

    def cmake_args(self):
        arguments = [*super().cmake_args(), self.define_from_variant("PAGEWISE_MPI", "mpi")]
        if self.spec.satisfies("+mpi"):
            arguments.append(self.define("MPI_HOME", self.spec["mpi"].prefix))
        if self.spec.satisfies("^fujitsu-mpi"):
            # CMake looks for this name only with Fujitsu's compilers.
            arguments.append(self.define("MPI_C_COMPILER", self.spec["mpi"].prefix.bin.mpifcc))
        return arguments
