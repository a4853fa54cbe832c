# shellcheck shell=bash
# Source this file for the messages of the set-up's scripts. PROGRAM names the script.
# What the user interrupts did not fail: whatever runs ends, and no error follows.
trap 'exit 130' INT
say() { printf '%s: %s\n' "${PROGRAM}" "$1"; }
warn() { printf '%s: warning: %s\n' "${PROGRAM}" "$1" >&2; }

# fail MESSAGE REMEDY: print an error with its remedy, and exit with code 4. With PAGEWISE_SEVERITY=warning the caller
# continues without it.
fail() {
    printf '%s: %s: %s\n  remedy: %s\n' "${PROGRAM}" "${PAGEWISE_SEVERITY:-error}" "$1" "$2" >&2
    exit 4
}

# is_plain PATH: whether Spack's builds, compilers and loaders take this path as it is. They split paths at blanks, colons and
# commas, and expand other signs.
is_plain() {
    local signs=$'[][ \t\n,:;\'"`$&|<>(){}*?!#^\\\\]'
    [[ $1 != *${signs}* ]]
}

# is_on NAME: whether a variable is set to yes.
is_on() {
    case ${!1:-} in
        1 | yes | true) return 0 ;;
        '' | 0 | no | false) return 1 ;;
        *) fail "$1=${!1} is neither yes (1, yes, true) nor no (0, no, false)" "set $1 to one of these, or unset it" ;;
    esac
}
