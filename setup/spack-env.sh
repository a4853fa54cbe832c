# shellcheck shell=bash
# To be sourced (bash, zsh) with PAGEWISE_ROOT set: Spack's whole state in .pagewise, nothing read from or written to
# ~/.spack and /etc/spack, the project's Python.
export SPACK_USER_CONFIG_PATH="${PAGEWISE_ROOT}/.pagewise/spack-config"
export SPACK_USER_CACHE_PATH="${PAGEWISE_ROOT}/.pagewise/spack-cache"
export SPACK_SYSTEM_CONFIG_PATH="${PAGEWISE_ROOT}/.pagewise/spack-config/system"
export SPACK_GNUPGHOME="${PAGEWISE_ROOT}/.pagewise/gpg"
export SPACK_PYTHON="${PAGEWISE_ROOT}/.pagewise/venv/bin/python"
unset SPACK_DISABLE_LOCAL_CONFIG SPACK_ENV SPACK_ENV_VIEW
# Spack is 100 000 lines of Python: compiling them anew in each call takes a second.
unset PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME
