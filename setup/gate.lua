-- The settings of the module pagewise, which `make deploy` writes: the runner and the configurations of this release.
prepend_path("PATH", "@FOLDER@/.pagewise/exec/bin")
prepend_path("PATH", "@FOLDER@")
setenv("PAGEWISE_RELEASE", "@RELEASE@")
setenv("PAGEWISE_MODULES", "@TREE@")
append_path("MODULEPATH", "@FOLDER@/.pagewise/exec/share/pagewise/modulefiles")
if "@KIND@" == "hierarchy" then
    prepend_path("MODULEPATH", "@TREE@")
end

-- Completion. Other shells may use Lmod for bash.
local share = "@FOLDER@/.pagewise/share"
if myShellName() == "bash" then
    execute{cmd='[ -z "${BASH_VERSION:-}" ] || . ' .. share .. "/bash-completion/completions/pagewise", modeA={"load"}}
    execute{cmd='[ -z "${BASH_VERSION:-}" ] || complete -r pagewise 2>/dev/null || :', modeA={"unload"}}
elseif myShellName() == "zsh" then
    local functions = share .. "/zsh/site-functions"
    -- Without compdef, the user's compinit finds the function in fpath.
    execute{cmd="fpath=(" .. functions .. " ${fpath:#" .. functions .. "}); ! command -v compdef >/dev/null || . " .. functions .. "/_pagewise", modeA={"load"}}
    execute{cmd="fpath=(${fpath:#" .. functions .. "}); ! command -v compdef >/dev/null || compdef -d pagewise", modeA={"unload"}}
end
