from spack_repo.pagewise.build_systems.kernels import ConfigurationPackage, depends_on_same, one_of

from spack.package import *


class PagewiseEmber(ConfigurationPackage):
    """Block-structured hydrodynamics with adaptive refinement, in one configuration of pages,
    prefetching and compiler.
    """

    one_of("prefetch", "Prefetch instructions", "hardware", "compiler", "software")
    variant("mpi", default=True, description="Enable MPI")

    depends_on("hdf5@1.10.2:+hl")
    depends_on("mpi", when="+mpi")
    depends_on_same("pagewise-eos-table", type=("build", "run"))

    def cmake_args(self):
        table = self.spec["pagewise-eos-table"].prefix.share.pagewise.join("helmholtz.h5")
        args = [
            *super().cmake_args(),
            *self.mini_args("ember"),
            self.define("PAGEWISE_EOS_TABLE", table),
            self.define_from_variant("PAGEWISE_MPI", "mpi"),
        ]
        if self.spec.satisfies("+mpi"):
            args.append(self.define("MPI_HOME", self.spec["mpi"].prefix))
        if self.spec.satisfies("^fujitsu-mpi"):
            # CMake looks for this name only with Fujitsu's compilers.
            args.append(self.define("MPI_C_COMPILER", self.spec["mpi"].prefix.bin.mpifcc))
        return args
