from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Gmake(Package):
    """The site's GNU make; see gcc."""

    has_code = False

    def setup_dependent_package(self, module, dependent_spec):
        jobs = determine_number_of_jobs(parallel=dependent_spec.package.parallel)
        module.make = MakeExecutable(self.spec.prefix.bin.make, jobs=jobs)
