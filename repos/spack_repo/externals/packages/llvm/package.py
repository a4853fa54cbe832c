from spack_repo.builtin.packages.llvm.package import Llvm as Builtin
from spack_repo.externals.build_systems.site import SiteCompiler

from spack.package import *


class Llvm(SiteCompiler):
    """The site's clang and flang."""

    variant("clang", default=True, description="C and C++ compiler")
    variant("flang", default=False, description="Fortran compiler")
    variant("lld", default=False, description="Linker")
    variant("lldb", default=False, description="Debugger")
    provides("c", "cxx", when="+clang")
    provides("fortran", when="+flang")

    compiler_wrapper_link_paths = Builtin.compiler_wrapper_link_paths
    debug_flags = Builtin.debug_flags
    opt_flags = Builtin.opt_flags
    implicit_rpath_libs = Builtin.implicit_rpath_libs
    archspec_name = Builtin.archspec_name
    _standard_flag = Builtin._standard_flag
