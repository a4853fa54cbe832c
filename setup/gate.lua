-- pagewise @RELEASE@: the runner and the configurations of this release. Written by `make deploy`.
whatis("Name: pagewise")
whatis("Version: @RELEASE@")
whatis("Description: what huge pages, prefetching, store type and compiler do to a kernel on this node")

help([[
pagewise compare compares the configurations of this release on this node and writes the results to the current folder.
pagewise list shows the configurations. pagewise --help describes all commands.
]])

prepend_path("PATH", "@FOLDER@")
setenv("PAGEWISE_RELEASE", "@RELEASE@")
setenv("PAGEWISE_MODULES", "@TREE@")
if "@KIND@" == "hierarchy" then
    prepend_path("MODULEPATH", "@TREE@")
end
