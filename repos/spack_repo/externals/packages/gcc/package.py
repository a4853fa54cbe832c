from spack_repo.builtin.packages.gcc.package import Gcc as Builtin
from spack_repo.externals.build_systems.site import SiteCompiler

from spack.package import *


class Gcc(SiteCompiler):
    """The site's GCC."""

    variant("languages", default="c,c++,fortran", multi=True, description="Supported languages")
    provides("c", when="languages=c")
    provides("cxx", when="languages=c++")
    provides("fortran", when="languages=fortran")

    compiler_wrapper_link_paths = Builtin.compiler_wrapper_link_paths
    debug_flags = Builtin.debug_flags
    opt_flags = Builtin.opt_flags
    implicit_rpath_libs = Builtin.implicit_rpath_libs
    stdcxx_libs = Builtin.stdcxx_libs
    _standard_flag = Builtin._standard_flag

    @classmethod
    def runtime_constraints(cls, *, spec, pkg):
        Builtin.runtime_constraints(spec=spec, pkg=pkg)
