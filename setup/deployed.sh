# shellcheck shell=bash disable=SC2034
# Source this file after messages.sh in a script that was called with PREFIX and RELEASE. It sets the paths of a
# deployment: prefix, releases, folder (of the release), modules; and release.
[[ -n ${1:-} ]] || fail "PREFIX is not set" "make ${PROGRAM} PREFIX=/apps/pagewise RELEASE=<version>"
[[ ${1} == /* ]] || fail "PREFIX=$1 is not an absolute path" "make ${PROGRAM} PREFIX=/apps/pagewise RELEASE=<version>"
# It becomes part of modules and of the programs' library paths.
[[ ${1} =~ ^[A-Za-z0-9/._+-]+$ ]] || fail "PREFIX=$1 has characters other than letters, digits and / . _ + -" "use another folder"
[[ ${2:-} =~ ^[0-9]+(\.[0-9]+)*$ ]] || fail "RELEASE='${2:-}' is not a version number" "make ${PROGRAM} PREFIX=$1 RELEASE=<version>"
prefix="$(realpath -m -- "$1")" release=$2
releases="${prefix}/releases" folder="${prefix}/releases/${release}" modules="${prefix}/modules"
