# shellcheck shell=bash
# To be sourced after messages.sh, with root set.

# environment_folder NAME: the folder with the environment's spack.yaml; `default` is the project's root.
environment_folder() {
    # shellcheck disable=SC2154
    local folder="${root}/envs/$1" names
    [[ $1 != default ]] || folder="${root}"
    if [[ ! -f ${folder}/spack.yaml ]]; then
        names="$(cd -- "${root}/envs" && find . -mindepth 2 -maxdepth 2 -name spack.yaml -printf '%h ' | sed 's|\./||g')"
        fail "there is no environment '$1'" "take one of: default ${names% }"
    fi
    echo "${folder}"
}
