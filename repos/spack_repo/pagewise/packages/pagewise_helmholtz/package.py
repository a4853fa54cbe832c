from spack_repo.pagewise.build_systems.kernels import ConfigurationPackage, depends_on_same, one_of

from spack.package import *


class PagewiseHelmholtz(ConfigurationPackage):
    """The equation of state of degenerate matter over rows of zones, in one configuration of
    pages, prefetching and compiler.
    """

    one_of("prefetch", "Prefetching of the table", "hardware", "compiler", "software", "block")

    depends_on("hdf5@1.10.2:+hl")
    depends_on_same("pagewise-eos-table", type=("build", "run"))

    def cmake_args(self):
        table = self.spec["pagewise-eos-table"].prefix.share.pagewise.join("helmholtz.h5")
        args = [*super().cmake_args(), *self.mini_args("helmholtz")]
        return [*args, self.define("PAGEWISE_EOS_TABLE", table)]
