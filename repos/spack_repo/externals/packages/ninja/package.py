from spack_repo.externals.build_systems.site import SiteMake


class Ninja(SiteMake):
    """The site's Ninja."""
