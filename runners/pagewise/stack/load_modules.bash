# Loads each named module in a separate shell and writes the environment that results.
# usage: bash load_modules.bash LMOD_INIT MODULE_TREE OUT_FOLDER MODULE...
# OUT_FOLDER/<n>.env: NUL-separated variables of the n-th module, absent when it could not be loaded;
# OUT_FOLDER/<n>.err: the messages of Lmod.
lmod_init="$1" tree="$2" out="$3"
shift 3

# Lmod's own start-up reads unset variables: no `set -u` here.
# shellcheck disable=SC1090
source "${lmod_init}" || exit 3
export MODULEPATH="${tree}"

number=0
for name in "$@"; do
    (
        module load "${name}" 2>"${out}/${number}.err" || exit 1
        env -0 >"${out}/${number}.env"
    )
    number=$((number + 1))
done
exit 0
