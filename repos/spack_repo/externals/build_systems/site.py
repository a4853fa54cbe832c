"""Packages that the site provides: what dependent packages need, not how to build them.

Spack solves an external with all conflicts, patches and dependencies of its recipe: 3 s per solve
with the builtin recipes, 0.8 s with those of this repository.
"""

from spack_repo.builtin.build_systems.compiler import CompilerPackage
from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class SitePackage(Package):
    """A library or program of the site."""

    has_code = False


class SiteMpi(SitePackage):
    """The C interface of an MPI."""

    provides("mpi")


class SiteBlas(SitePackage):
    """A BLAS; `extra_attributes: library:` names its file."""

    provides("blas")


class SiteMake(SitePackage):
    """A program with the command line of make."""

    def setup_dependent_package(self, module, dependent_spec):
        jobs = determine_number_of_jobs(parallel=dependent_spec.package.parallel)
        program = "make" if self.name == "gmake" else self.name
        setattr(module, program, MakeExecutable(self.spec.prefix.bin.join(program), jobs=jobs))


class SiteCompiler(SitePackage, CompilerPackage):
    """A compiler; it takes the other members from the builtin recipe."""
