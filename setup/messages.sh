# shellcheck shell=bash
# To be sourced: how the scripts of the set-up speak. PROGRAM names the script.
say() { printf '%s: %s\n' "${PROGRAM}" "$1"; }
warn() { printf '%s: warning: %s\n' "${PROGRAM}" "$1" >&2; }

# fail MESSAGE REMEDY: say both and end.
fail() {
    printf '%s: error: %s\n  remedy: %s\n' "${PROGRAM}" "$1" "$2" >&2
    exit 4
}

# is_on NAME: whether a variable means yes.
is_on() {
    case ${!1:-} in
        1 | yes | true) return 0 ;;
        '' | 0 | no | false) return 1 ;;
        *) fail "$1=${!1} is neither yes (1, yes, true) nor no (0, no, false)" "correct or unset $1" ;;
    esac
}
