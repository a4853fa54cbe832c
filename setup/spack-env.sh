# shellcheck shell=bash
# Source this file (bash, zsh) with PAGEWISE_ROOT set. It keeps all of Spack's state in .pagewise, so that Spack neither
# reads nor writes ~/.spack and /etc/spack, and selects the project's Python.
export SPACK_USER_CONFIG_PATH="${PAGEWISE_ROOT}/.pagewise/spack-config"
export SPACK_USER_CACHE_PATH="${PAGEWISE_ROOT}/.pagewise/spack-cache"
export SPACK_SYSTEM_CONFIG_PATH="${PAGEWISE_ROOT}/.pagewise/spack-config/system"
export SPACK_GNUPGHOME="${PAGEWISE_ROOT}/.pagewise/gpg"
export SPACK_PYTHON="${PAGEWISE_ROOT}/.pagewise/venv/bin/python"
unset SPACK_DISABLE_LOCAL_CONFIG SPACK_ENV SPACK_ENV_VIEW
# From the MAKEFLAGS of `make --jobs N`, Spack takes descriptors that make does not pass to scripts, and closes other files.
[[ ${MAKEFLAGS:-} != *--jobserver* ]] || unset MAKEFLAGS MFLAGS
# Let Python cache Spack's compiled modules: compiling 100 000 lines in each call takes a second.
unset PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME
