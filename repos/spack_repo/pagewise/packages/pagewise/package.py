from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage
from spack_repo.pagewise.build_systems.kernels import RELEASES, Address, Homepage

from spack.package import *


class Pagewise(PythonPackage):
    """Compares huge pages, prefetching, store type and compilers on this node, with evidence.

    The program `pagewise`. It measures the installed configurations of the kernels (pagewise-micro
    and others), or your program.
    """

    homepage = Homepage()
    git = Address()

    license("Apache-2.0")

    version("develop", branch="main")
    for _release, _commit in RELEASES.items():
        # 0.1.0 has no launcher, and its set-up writes shell files of checkouts only.
        if _release != "0.1.0":
            version(_release, commit=_commit)

    variant("store", default=True, description="Query many results (pagewise results query)")
    variant("cluster", default=True, description="Install ReFrame, for comparisons on nodes")

    build_directory = "runners"

    #: For the package's module, which the site's own Spack writes.
    spack = spack_script

    depends_on("c", type="build")
    depends_on("py-setuptools@68:", type="build")
    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-click@8.1:")
        depends_on("py-rich@13.7:")
        depends_on("py-rich-click@1.8.5:")
        depends_on("py-numpy@1.26:")
        depends_on("py-scipy@1.11:")
        depends_on("py-matplotlib@3.8:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-markupsafe@2.1:")
        depends_on("py-pyyaml@6.0:")
        depends_on("py-pyelftools@0.29:")
        depends_on("duckdb@1.3: +python", when="+store")
    with default_args(type="run"):
        depends_on("reframe@4.7:", when="+cluster")
        depends_on("hyperfine@1.15:")
        depends_on("hwloc")
        depends_on("lmod@8:")

    requires("platform=linux", msg="pagewise reads pages and topology from Linux (/proc, /sys)")

    @run_before("install")
    def build_launcher(self):
        """The launcher pagewise-exec with its modules, and completion, from the sources."""
        program = Path(self.stage.path, "pagewise")
        source = Path(self.stage.source_path)
        program.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{source}/runners:$PYTHONPATH"\n'
            f"exec {python.path} -c \"import sys; sys.argv[0] = 'pagewise'; "
            'from pagewise.cli import main; main()" "$@"\n'
        )
        set_executable(str(program))
        Executable(str(source / "setup" / "shell-files"))(str(program), self.prefix.share)
        cache = {"XDG_CACHE_HOME": self.stage.path}
        Executable(str(program))("exec", "--install", self.prefix, extra_env=cache)

    @run_after("install")
    def find_packages(self):
        """Let the program find its Python packages without PYTHONPATH, which all programs read."""
        python_package = self.spec["python"].package
        prefixes = [spec.prefix for spec in self.spec.traverse(deptype="run")]
        names = (python_package.purelib, python_package.platlib)
        known = dict.fromkeys(join_path(prefix, name) for prefix in prefixes for name in names)
        folders = [folder for folder in known if Path(folder).is_dir()]
        program = self.prefix.bin.pagewise
        filter_file(r"^import sys$", f"import sys\nsys.path[1:1] = {folders!r}", program)

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        # For modules that load no dependencies. Programs of the system come first.
        for name in ("hyperfine", "hwloc"):
            env.append_path("PATH", self.spec[name].prefix.bin)
        # The modules pagewise-pages.
        env.prepend_path("MODULEPATH", self.prefix.share.pagewise.modulefiles)
        # LMOD_PKG would change the user's own Lmod.
        env.set("PAGEWISE_LMOD", self.spec["lmod"].prefix.lmod.lmod)

    def test_commands(self):
        """list the page policies that are available to a program"""
        Executable(self.prefix.bin.pagewise)("list", "policies", "--json", "--", "/bin/true")

    def test_exec(self):
        """run a program under a page policy"""
        Executable(self.prefix.bin.join("pagewise-exec"))("none", "--", "/bin/true")
