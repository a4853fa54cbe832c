from spack_repo.externals.build_systems.site import SiteMake


class Gmake(SiteMake):
    """The site's GNU make."""
