from spack_repo.externals.build_systems.site import SiteMpi


class Mpich(SiteMpi):
    """The site's MPICH."""
