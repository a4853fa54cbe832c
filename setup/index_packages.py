"""Run by `spack python`: create Spack's indexes of its package repositories, which every solve reads."""

import spack.repo

for repository in spack.repo.PATH.repos:
    for index in (repository.provider_index, repository.tag_index, repository.patch_index):
        assert index is not None
