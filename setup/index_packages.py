"""Run by `spack python`: create Spack's indexes of its package repositories, which every solve reads."""

import gc

import spack.repo

# All packages stay in memory until the end: looking for garbage would be a quarter of the work.
gc.set_threshold(100_000, 50, 100)
for repository in spack.repo.PATH.repos:
    for index in (repository.provider_index, repository.tag_index, repository.patch_index):
        assert index is not None
