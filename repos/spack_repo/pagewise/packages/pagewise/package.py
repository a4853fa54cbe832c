from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage
from spack_repo.pagewise.build_systems.kernels import RELEASES
from spack_repo.pagewise.build_systems.sources import CLONE, HOMEPAGE, address_of

from spack.package import *


class Pagewise(PythonPackage):
    """Compares huge pages, prefetching, store type and compilers on this node, with evidence.

    The program `pagewise`. It measures the installed configurations of the kernels (pagewise-micro
    and others), or a program of yours.
    """

    homepage = HOMEPAGE
    git = CLONE

    license("Apache-2.0")

    # The commit of the recipes. Spack resolves it when it concretizes, and records it in the spec.
    version("develop", branch="HEAD")
    for _release, _commit in RELEASES.items():
        # 0.1.0 has no launcher, and its set-up writes shell files of checkouts only.
        if _release != "0.1.0":
            version(_release, commit=_commit, git=address_of(_commit))

    variant("store", default=True, description="Query many results (pagewise results query)")
    variant("cluster", default=True, description="Install ReFrame, for comparisons on nodes")

    build_directory = "runners"

    depends_on("c", type="build")
    depends_on("py-setuptools@68:80", type="build")
    # The ranges of runners/pyproject.toml.
    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-click@8.1:8")
        depends_on("py-rich@13.7:14")
        depends_on("py-rich-click@1.8.5:1")
        depends_on("py-numpy@1.26:2")
        depends_on("py-scipy@1.11:1")
        depends_on("py-matplotlib@3.8:3")
        depends_on("py-jinja2@3.1:3")
        depends_on("py-markupsafe@2.1:3")
        depends_on("py-pyyaml@6.0:6")
        depends_on("py-pyelftools@0.29:0")
        depends_on("duckdb@1.3:1 +python", when="+store")
    with default_args(type="run"):
        depends_on("reframe@4.7:4", when="+cluster")
        depends_on("hyperfine@1.15:1")
        depends_on("hwloc")
        depends_on("lmod@8:")

    requires("platform=linux", msg="pagewise reads pages and topology from Linux (/proc, /sys)")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        # install_shell_files and install_launcher run the installed program.
        env.prepend_path("PYTHONPATH", join_path(self.prefix, self.spec["python"].package.purelib))

    @run_after("install")
    def install_shell_files(self):
        """Completion for bash, zsh and fish."""
        write = Executable(join_path(self.stage.source_path, "setup", "shell-files"))
        write(self.prefix.bin.pagewise, self.prefix.share)

    @run_after("install")
    def install_launcher(self):
        """The launcher pagewise-exec, which needs no Python, and the modules pagewise-pages."""
        install = Executable(self.prefix.bin.pagewise)
        install("exec", "--install", self.prefix, extra_env={"XDG_CACHE_HOME": self.stage.path})

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        # For modules that load no dependencies. Programs of the system come first.
        for name in ("hyperfine", "hwloc"):
            env.append_path("PATH", self.spec[name].prefix.bin)
        python = self.spec["python"].package
        for dependency in self.spec.traverse(deptype="run", root=False):
            for folder in dict.fromkeys((python.purelib, python.platlib)):
                if Path(dependency.prefix, folder).is_dir():
                    env.append_path("PYTHONPATH", join_path(dependency.prefix, folder))
        if self.spec.satisfies("+cluster"):
            env.append_path("PYTHONPATH", self.spec["reframe"].prefix)
        # The modules pagewise-pages.
        env.prepend_path("MODULEPATH", self.prefix.share.pagewise.modulefiles)
        # LMOD_PKG would change the user's own Lmod.
        env.set("PAGEWISE_LMOD", self.spec["lmod"].prefix.lmod.lmod)
        env.set("PAGEWISE_SPACK", spack_script)

    def test_commands(self):
        """list the page policies that are available to a program"""
        Executable(self.prefix.bin.pagewise)("list", "policies", "--json", "--", "/bin/true")

    def test_exec(self):
        """run a program under a page policy"""
        Executable(self.prefix.bin.join("pagewise-exec"))("none", "--", "/bin/true")
