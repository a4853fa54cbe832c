from spack_repo.externals.build_systems.site import SiteMpi


class Mvapich2(SiteMpi):
    """The site's MVAPICH."""
