# shellcheck shell=bash disable=SC2154
# Source this file after messages.sh, with root set. If BUNDLE (a bundle, or the folder that it was unpacked into) and KEY
# (the fingerprint of its signer) are set, it verifies the bundle and makes everything come from it, nothing from the
# network.
if [[ -n ${BUNDLE:-} ]]; then
    bundle="$(realpath -e -- "${BUNDLE}" 2>/dev/null)" || fail "bundle ${BUNDLE} does not exist" "name the archive, or the folder with its content"
    # Spack and pip split the paths of their sources.
    place="${bundle}"
    [[ -d ${bundle} ]] || place="${root}"
    is_plain "${place}" || fail "a bundle cannot be installed from ${place}, because of the characters in this path" \
        "use a folder whose path contains letters, digits and / . _ + - only"
    if [[ -f ${bundle} ]]; then
        unpacked="${root}/.pagewise/bundle"
        archive="$(stat --format '%n %Y %s' -- "${bundle}")"
        if [[ ! -f ${unpacked}.archive || $(<"${unpacked}.archive") != "${archive}" ]]; then
            rm -rf -- "${unpacked}" "${unpacked}.archive"
            mkdir -p -- "${unpacked}"
            tar --extract --no-same-owner --no-same-permissions --strip-components 1 --directory "${unpacked}" --file "${bundle}" 2>/dev/null ||
                fail "${bundle} is damaged: it cannot be unpacked" "get the bundle again from its maker"
            echo "${archive}" >"${unpacked}.archive"
        fi
        bundle="${unpacked}"
    fi
    "${root}/setup/verify-bundle" "${bundle}" "${KEY:-}" || exit 4
    python="${PAGEWISE_PYTHON:-python3}"
    wanted="$(sed -nE 's/.*"python": "([0-9.]+)".*/\1/p' "${bundle}/bundle.json")"
    got="$("${python}" -c 'import sys; print("%d.%d" % sys.version_info[:2])' || true)"
    [[ ${got} == "${wanted}" ]] || fail "the bundle has packages for Python ${wanted}, and ${python} is ${got:-missing}" \
        "export PAGEWISE_PYTHON=<a Python ${wanted}>, or ask for a bundle made with Python ${got}"
    export BUNDLE="${bundle}" PAGEWISE_OFFLINE=1
    export PAGEWISE_SPACK_URL="file://${bundle}/spack.git" PAGEWISE_SPACK_PACKAGES_URL="file://${bundle}/spack-packages.git"
    export PAGEWISE_SPACK_INDEX="${bundle}/spack-index"
    export PIP_NO_INDEX=1 PIP_FIND_LINKS="${bundle}/wheels"
    unset PAGEWISE_USE_SPACK PIP_INDEX_URL PIP_EXTRA_INDEX_URL
fi
