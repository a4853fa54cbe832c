from spack_repo.externals.build_systems.site import SiteMpi


class Openmpi(SiteMpi):
    """The site's Open MPI."""
