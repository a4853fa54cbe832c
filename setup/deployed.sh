# shellcheck shell=bash disable=SC2034
# To be sourced after messages.sh by a script that was called with PREFIX and RELEASE: where things of a deployment are.
# prefix, release; releases, folder (of the release); modules.
[[ -n ${1:-} ]] || fail "where to? PREFIX is not given" "make ${PROGRAM} PREFIX=/apps/pagewise RELEASE=0.1.0"
[[ ${1} == /* ]] || fail "PREFIX=$1 is no absolute path" "make ${PROGRAM} PREFIX=/apps/pagewise RELEASE=0.1.0"
# It becomes part of modules and of what programs are linked to.
[[ ${1} =~ ^[A-Za-z0-9/._+-]+$ ]] || fail "PREFIX=$1 has characters other than letters, digits and / . _ + -" "take another folder"
[[ ${2:-} =~ ^[0-9]+(\.[0-9]+)*$ ]] || fail "RELEASE='${2:-}' is no version" "make ${PROGRAM} PREFIX=$1 RELEASE=0.1.0"
prefix="$(realpath -m -- "$1")" release=$2
releases="${prefix}/releases" folder="${prefix}/releases/${release}" modules="${prefix}/modules"
