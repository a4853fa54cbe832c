# shellcheck shell=bash
# To be sourced: how the scripts of the set-up speak. PROGRAM names the script.
say() { printf '%s: %s\n' "${PROGRAM}" "$1"; }
warn() { printf '%s: warning: %s\n' "${PROGRAM}" "$1" >&2; }

# fail MESSAGE REMEDY: say both and end.
fail() {
    printf '%s: error: %s\n  remedy: %s\n' "${PROGRAM}" "$1" "$2" >&2
    exit 4
}
