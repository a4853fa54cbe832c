# shellcheck shell=bash
# Source this file after messages.sh, with root set. It defines functions for environments and the site that each of them
# is built for.

# environment_folder NAME: the folder with the environment's spack.yaml; `default` is the project's root.
environment_folder() {
    # shellcheck disable=SC2154
    local folder="${root}/envs/$1" names
    [[ $1 != default ]] || folder="${root}"
    if [[ ! -f ${folder}/spack.yaml ]]; then
        names="$(environment_names | tr '\n' ' ')"
        fail "environment '$1' does not exist" "use one of: ${names% }"
    fi
    echo "${folder}"
}

# environment_names: all environments, one per line.
environment_names() {
    echo default
    (cd -- "${root}/envs" && find . -mindepth 2 -maxdepth 2 -name spack.yaml -printf '%P\n' | sed 's|/spack.yaml||' | sort)
}

# site_folder: the folder of the site that PAGEWISE_SITE names (default: the site that the set-up detected on this
# machine).
site_folder() {
    local site="${root}/envs/sites/${PAGEWISE_SITE:-}"
    if [[ -z ${PAGEWISE_SITE:-} ]]; then
        echo "${root}/.pagewise/site"
        return
    fi
    [[ -d ${site} ]] || site="${PAGEWISE_SITE}"
    [[ -d ${site} ]] || fail "site '${PAGEWISE_SITE}' does not exist" "name a folder of envs/sites, or unset PAGEWISE_SITE"
    readlink -f -- "${site}"
}

# use_site ENVIRONMENT FOLDER: make FOLDER the site that the environment includes.
use_site() {
    local link="${root}/.pagewise/sites/$1" only="${root}/.pagewise/system-compiler/$1"
    mkdir -p -- "${link%/*}"
    ln -sfnT -- "$2" "${link}"
    ! grep -q "/system-compiler/$1$" "$(environment_folder "$1")/spack.yaml" ||
        "${root}/.pagewise/venv/bin/python" "${root}/setup/system_compiler.py" "${link}" "${only}"
}

# switch_site ENVIRONMENT FOLDER: use_site, and restore what was solved and installed for this site before. Each site keeps
# its state, so that switching back does not solve again.
switch_site() {
    local state="${root}/.pagewise" before file kept
    local files=("$(environment_folder "$1")/spack.lock" "${state}/stamps/solved-$1" "${state}/stamps/installed-$1")
    before="$(readlink -- "${state}/sites/$1" || true)"
    if [[ ${before} != "$2" ]]; then
        if [[ -n ${before} && -f ${files[1]} ]]; then
            kept="$(kept_for "$1" "${before}")"
            mkdir -p -- "${kept}"
            for file in "${files[@]}"; do [[ ! -f ${file} ]] || cp -- "${file}" "${kept}"; done
        fi
        rm -f -- "${files[@]}"
        kept="$(kept_for "$1" "$2")"
        for file in "${files[@]}"; do [[ ! -f ${kept}/${file##*/} ]] || cp -- "${kept}/${file##*/}" "${file}"; done
    fi
    use_site "$1" "$2"
}

# kept_for ENVIRONMENT FOLDER: the folder that keeps what was solved for a site.
kept_for() { echo "${root}/.pagewise/kept/$1/$(sha256sum <<<"$2" | cut -c -12)"; }
