from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Ninja(Package):
    """The site's Ninja; see gcc."""

    has_code = False

    def setup_dependent_package(self, module, dependent_spec):
        jobs = determine_number_of_jobs(parallel=dependent_spec.package.parallel)
        module.ninja = MakeExecutable(self.spec.prefix.bin.ninja, jobs=jobs)
