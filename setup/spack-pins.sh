# shellcheck shell=bash disable=SC2034
# The pinned versions of Spack and its packages, which are checked after cloning. Spack is pinned by its tree instead of
# its commit, because a mirror with rewritten history has other commits with the same content.
spack_url=https://github.com/spack/spack.git
spack_tag=v1.1.0
spack_tree=c8e4b8166d4aaa26ff0e515265d047b02cae3e2b
spack_packages_url=https://github.com/spack/spack-packages.git
spack_packages_tag=v2026.03.0
spack_packages_commit=0e093dad700a9be836b0d4aefc4bb5183e4990bd
