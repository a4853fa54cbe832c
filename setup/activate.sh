# shellcheck shell=bash
# Source this file in bash or zsh. It adds `pagewise` to PATH, with completion, defines Spack's shell
# function with the project's settings and Lmod's `module`, and adds the module trees of all environments that are built and
# the modules pagewise-pages.
# Then `spack env activate .` and `module load pagewise-micro/...` work.

# The path of this file, which bash and zsh name differently. `command -p` searches the system's folders, independent of
# PATH.
if [ -n "${BASH_VERSION:-}" ]; then
    PAGEWISE_ROOT="${BASH_SOURCE[0]}"
elif [ -n "${ZSH_VERSION:-}" ]; then
    # shellcheck disable=SC2296
    PAGEWISE_ROOT="${(%):-%x}"
else
    # Other shells read no further: what follows may not be in their syntax.
    printf 'pagewise: error: setup/activate.sh is for bash and zsh\n  remedy: source it in bash or zsh, or put the checkout on PATH\n' >&2
    return 1
fi
[ ! -L "${PAGEWISE_ROOT}" ] || PAGEWISE_ROOT="$(command -p readlink -f -- "${PAGEWISE_ROOT}")"
case "${PAGEWISE_ROOT}" in */*) ;; *) PAGEWISE_ROOT="./${PAGEWISE_ROOT}" ;; esac
PAGEWISE_ROOT="$(CDPATH='' cd -P -- "${PAGEWISE_ROOT%/*}/.." && pwd -P)"
export PAGEWISE_ROOT
case "${PAGEWISE_ROOT}" in
    *:*)
        printf 'pagewise: error: PATH and MODULEPATH cannot contain %s: its name has a colon\n  remedy: move the checkout\n' \
            "${PAGEWISE_ROOT}" >&2
        return 1
        ;;
esac

. "${PAGEWISE_ROOT}/setup/spack-env.sh"
if [ -f "${PAGEWISE_ROOT}/.pagewise/spack/share/spack/setup-env.sh" ]; then
    # Otherwise it sets up Spack's own module trees, which takes seconds.
    # shellcheck source=/dev/null
    SPACK_SKIP_MODULES=1 . "${PAGEWISE_ROOT}/.pagewise/spack/share/spack/setup-env.sh"
fi

if ! command -v module >/dev/null 2>&1; then
    if [ -n "${ZSH_VERSION:-}" ]; then pagewise_shell=zsh; else pagewise_shell=bash; fi
    pagewise_lmod="${LMOD_PKG:-/usr/share/lmod/lmod}/init/${pagewise_shell}"
    if [ -f "${pagewise_lmod}" ]; then
        # shellcheck source=/dev/null
        . "${pagewise_lmod}"
    else
        printf 'pagewise: Lmod is missing: %s does not exist\n  remedy: apt-get install lmod, or set LMOD_PKG\n' \
            "${pagewise_lmod}" >&2
    fi
    unset pagewise_shell pagewise_lmod
fi
if command -v module >/dev/null 2>&1 && [ -d "${PAGEWISE_ROOT}/.pagewise/modules" ]; then
    while IFS= read -r pagewise_tree <&3; do
        [ -z "${pagewise_tree}" ] || module use "${pagewise_tree}"
    done 3<<TREES
$(find "${PAGEWISE_ROOT}/.pagewise/modules" -mindepth 1 -maxdepth 1 -name '[a-z]*' -not -name '*.new' | sort -r)
TREES
    unset pagewise_tree
fi
if command -v module >/dev/null 2>&1 && [ -d "${PAGEWISE_ROOT}/.pagewise/exec/share" ]; then
    module use --append "${PAGEWISE_ROOT}/.pagewise/exec/share/pagewise/modulefiles"
fi

case ":${PATH:-}:" in
    *":${PAGEWISE_ROOT}:"*) ;;
    *) export PATH="${PAGEWISE_ROOT}:${PAGEWISE_ROOT}/.pagewise/exec/bin${PATH:+:${PATH}}" ;;
esac
pagewise_share="${PAGEWISE_ROOT}/.pagewise/share"
if [ -d "${pagewise_share}" ]; then
    if [ -n "${BASH_VERSION:-}" ]; then
        # shellcheck source=/dev/null
        . "${pagewise_share}/bash-completion/completions/pagewise"
    else
        # shellcheck disable=SC2206
        fpath=("${pagewise_share}/zsh/site-functions" ${fpath})
        # If compdef is not defined yet, the user's compinit finds the completion through fpath.
        if command -v compdef >/dev/null; then
            # shellcheck source=/dev/null
            . "${pagewise_share}/zsh/site-functions/_pagewise"
        fi
    fi
fi
unset pagewise_share
