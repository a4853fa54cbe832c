from spack_repo.externals.build_systems.site import SiteBlas


class NetlibLapack(SiteBlas):
    """The site's reference BLAS."""
