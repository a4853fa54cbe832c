# shellcheck shell=bash disable=SC2034
# What Spack is made of here. Trees and commits are checked after the clone. Spack is known by its tree and not by its
# commit: a mirror with rewritten history has other commits of the same content.
spack_url=https://github.com/spack/spack.git
spack_tag=v1.1.0
spack_tree=c8e4b8166d4aaa26ff0e515265d047b02cae3e2b
spack_packages_url=https://github.com/spack/spack-packages.git
spack_packages_tag=v2025.11.0
spack_packages_commit=119680aeee8ea802c6111b7167583bddef97e82f
