# shellcheck shell=bash
# Source this file with SPACK_GNUPGHOME set, before GPG uses the project's keys. It defines end_gpg, to be called at exit: end
# the programs that GPG started in the background. If its agent already runs now, somebody else started it, and it stays.
gpg_ran="$(gpg-connect-agent --homedir "${SPACK_GNUPGHOME}" --no-autostart 'GETINFO pid' /bye 2>/dev/null || true)"
end_gpg() { [[ -n ${gpg_ran} ]] || gpgconf --homedir "${SPACK_GNUPGHOME}" --kill all >/dev/null 2>&1 || true; }
