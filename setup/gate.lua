-- pagewise @RELEASE@: the runner and the configurations of this release. Written by `make deploy`.
whatis("Name: pagewise")
whatis("Version: @RELEASE@")
whatis("Description: what huge pages, prefetching, store type and compiler do to a kernel on this node")

help([[
pagewise compare compares the configurations of this release on this node; results go to the folder where it is run.
pagewise list shows them, and man pagewise has the rest.
]])

prepend_path("PATH", "@FOLDER@")
prepend_path("MANPATH", "@FOLDER@/.pagewise/share/man")
-- The empty part stands for the system's own pages.
append_path("MANPATH", "")
setenv("PAGEWISE_RELEASE", "@RELEASE@")
setenv("PAGEWISE_MODULES", "@TREE@")
if "@KIND@" == "hierarchy" then
    prepend_path("MODULEPATH", "@TREE@")
end
