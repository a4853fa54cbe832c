# shellcheck shell=bash
# Source this file for the messages of the set-up's scripts. PROGRAM names the script.
say() { printf '%s: %s\n' "${PROGRAM}" "$1"; }
warn() { printf '%s: warning: %s\n' "${PROGRAM}" "$1" >&2; }

# fail MESSAGE REMEDY: print an error with its remedy, and exit with code 4.
fail() {
    printf '%s: error: %s\n  remedy: %s\n' "${PROGRAM}" "$1" "$2" >&2
    exit 4
}

# is_on NAME: whether a variable is set to yes.
is_on() {
    case ${!1:-} in
        1 | yes | true) return 0 ;;
        '' | 0 | no | false) return 1 ;;
        *) fail "$1=${!1} is neither yes (1, yes, true) nor no (0, no, false)" "set $1 to one of these, or unset it" ;;
    esac
}
