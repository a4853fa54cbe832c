from spack_repo.externals.build_systems.site import SiteMpi


class FujitsuMpi(SiteMpi):
    """The site's Fujitsu MPI."""
