"""Base classes of the packages that are built from the folder kernels/."""

import json
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.pagewise.build_systems.facts import PLAIN, facts_of
from spack_repo.pagewise.build_systems.sources import CLONE, HOMEPAGE, address_of
from spack_repo.pagewise.build_systems.targets import built_for

from spack.package import *

#: The commit of each release. A release never changes: a correction is another version.
RELEASES = {
    "0.2.0": "08ebc01806c72a35d14c540240ac32de2f576e87",
    "0.1.0": "da046ae328555136a91c07012d023ae886eb3ff2",
}

#: Exit code of a kernel whose page policy is unavailable.
PAGES_UNAVAILABLE = 3

#: The page policies by name: the kind of their pages, and what a module sets. With libmpg, the
#: first touch places a page (Feldman et al., PEARC '23, appendix A), and freed memory is returned
#: and reused as without it.
POLICIES = {
    policy["name"]: policy
    for policy in json.loads(Path(__file__).with_name("policies.json").read_text(encoding="utf-8"))
}
BY_LIBMPG = tuple(name for name, policy in POLICIES.items() if policy.get("library") == "libmpg")

#: Kernels whose validation fails in an emulator, and why.
NOT_EMULATED = {"page_faults": "the emulator's page faults are counted with the program's"}


class KernelsPackage(CMakePackage):
    """A part of kernels/, which is one CMake project; each package builds its own targets."""

    homepage = HOMEPAGE
    git = CLONE

    license("Apache-2.0")

    # The commit of the recipes. Spack resolves it when it concretizes, and records it in the spec.
    version("develop", branch="HEAD")
    for _release, _commit in RELEASES.items():
        version(_release, commit=_commit, git=address_of(_commit))

    variant("openmp", default=True, description="Enable OpenMP threads")
    variant("papi", default=False, description="Enable hardware counters with PAPI")

    # Ninja configures and builds these small projects faster than make.
    generator("ninja")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("cmake@3.20:", type="build")

    requires(
        "platform=linux",
        msg="page policies and verification need Linux (madvise, hugetlbfs, /proc/self/smaps)",
    )

    conflicts(
        "+ipo", msg="interprocedural optimisation (+ipo) may remove timed passes; build without it"
    )

    # Pass the toolchain's flags to CMake, because they are part of the records.
    flag_handler = build_system_flags

    @property
    def root_cmakelists_dir(self):
        """kernels/ in a clone of the project; `spack develop` may name kernels/ itself."""
        kernels = Path(self.stage.source_path, "kernels")
        return str(kernels) if kernels.is_dir() else self.stage.source_path

    def cmake_args(self):
        return [
            *self.cross_args(),
            self.define("BUILD_TESTING", False),
            self.define_from_variant("PAGEWISE_OPENMP", "openmp"),
            self.define_from_variant("PAGEWISE_PAPI", "papi"),
        ]

    def cross_args(self):
        """CMake's arguments if the target is of another family than this machine."""
        family = str(self.spec.target.family)
        if family == str(host_platform().default_target().family):
            return []
        return [
            self.define("CMAKE_SYSTEM_NAME", "Linux"),
            self.define("CMAKE_SYSTEM_PROCESSOR", family),
        ]


class LibraryUserPackage(KernelsPackage):
    """A package that links an installed libpagewise."""

    for setting in (
        "+openmp",
        "~openmp",
        "+papi",
        "~papi",
        "@develop",
        *(f"@{known}" for known in RELEASES),
    ):
        depends_on(f"libpagewise{setting}", when=setting)

    def cmake_args(self):
        return [*super().cmake_args(), self.define("PAGEWISE_LIBRARY", False)]


class ProgramsPackage(LibraryUserPackage):
    """Programs in one configuration of pages, prefetching, stores, loops and compiler.

    A package declares `prefetch` with its values, and `stores` and `loop` if its programs are
    sensitive to them.
    """

    variant(
        "hugepages",
        default="none",
        values=tuple(POLICIES),
        multi=False,
        description="Page policy: base pages, THP, hugetlb pool, or Fujitsu's libmpg",
    )

    for _name, _vendor in (
        ("llvm", "LLVM"),
        ("acfl", "Arm's compiler"),
        ("cce", "Cray's compiler"),
    ):
        for _language in ("c", "fortran"):
            conflicts(
                "prefetch=compiler",
                when=f"%{_language}={_name}",
                msg=f"{_vendor} has no prefetch=compiler; use %gcc, or prefetch=software",
            )
    conflicts(
        "prefetch=compiler",
        when="target=a64fx %fortran=gcc",
        msg="prefetch=compiler has no effect in GCC's code for SVE; use %fj, or prefetch=software",
    )
    for _policy in BY_LIBMPG:
        depends_on("fujitsu-libmpg", when=f"hugepages={_policy}")

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define_from_variant("PAGEWISE_HUGEPAGES", "hugepages"),
            self.define_from_variant("PAGEWISE_PREFETCH", "prefetch"),
            *self.libmpg_args(),
        ]

    @property
    def module_tail(self):
        """End of a module's name: prefetch-stores; if set loop, library, SIMD and others."""
        variants = self.spec.variants
        built = self.configuration()
        parts = [f"{built['prefetch']}-{built['stores']}"]
        if built["loop"] != "explicit":
            parts.append(f"loop-{built['loop']}")
        if "openmp" in variants and not variants["openmp"].value:
            parts.append("serial")
        parts.append(self.library_name())
        if "runtime" in variants and variants["runtime"].value != "compiler":
            parts.append(variants["runtime"].value)
        if "simd" in variants and variants["simd"].value != "compiler":
            parts.append(f"simd-{variants['simd'].value}")
        if "sector" in variants and variants["sector"].value != "none":
            parts.append(f"sector-{variants['sector'].value}")
        return "-".join(filter(None, parts))

    @property
    def built_for(self):
        """The target of its code, for the module."""
        return built_for(self.spec)

    @property
    def built_for_ancestors(self):
        """The archspec names of the target's ancestors, by which modules can be ordered."""
        target = self.spec.target
        own = [target.name] if self.built_for != target.name else []
        return " ".join([*own, *(ancestor.name for ancestor in target.ancestors)])

    def library_name(self):
        """The library that the programs call instead of the system's; empty for none."""
        variants = self.spec.variants
        named = variants["mathlib"].value if "mathlib" in variants else "libm"
        return "" if named == "libm" else named

    def libmpg_args(self):
        """CMake's argument with the prefix of Fujitsu's libmpg, if the policy uses it."""
        if self.spec.variants["hugepages"].value not in BY_LIBMPG:
            return []
        return [self.define("PAGEWISE_LIBMPG_ROOT", self.spec["fujitsu-libmpg"].prefix)]

    def configuration(self):
        """The build's facts that every record of the programs must contain."""
        variants = self.spec.variants
        named = (*PLAIN, "openmp", "papi")
        return {**PLAIN, **{name: variants[name].value for name in named if name in variants}}

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        for name, value in facts_of(self.spec, self).items():
            env.set(f"PAGEWISE_{name}", value)
        policy = self.spec.variants["hugepages"].value
        for name, value in POLICIES[policy].get("environment", {}).items():
            env.set(name, value)
        if policy in BY_LIBMPG:
            env.prepend_path("LD_LIBRARY_PATH", self.spec["fujitsu-libmpg"].prefix.lib64)

    def test_kernels(self):
        """run every installed kernel at a small size, and check its result and pages"""
        descriptions = sorted(Path(self.prefix, "share/pagewise/kernels").glob("*.yaml"))
        programs = {path.name for path in Path(self.prefix.bin).glob("pw-*")}
        if self.spec.satisfies("@:0.2.0"):
            raise SkipTest("the descriptions of releases up to 0.2.0 are not JSON")
        kernels = [json.loads(path.read_text(encoding="utf-8")) for path in descriptions]
        assert kernels, f"{self.prefix} contains no kernel"
        assert {kernel["executable"] for kernel in kernels} == programs, (
            "each program has a kernel.yaml"
        )
        for kernel in kernels:
            with test_part(
                self, f"test_kernels_{kernel['name']}", purpose=f"run {kernel['executable']}"
            ):
                self.run_small(kernel)

    def run_small(self, kernel):
        """Run a kernel with the arguments of `smoke` in its kernel.yaml, and check its record."""
        record_file = Path(f"{kernel['name']}.jsonl").absolute()
        arguments = [*kernel["smoke"]["arguments"], "--record", str(record_file)]
        program = Executable(self.prefix.bin.join(kernel["executable"]))
        emulate = Path(self.prefix.share, "pagewise", "emulate")
        if emulate.exists():
            if kernel["name"] in NOT_EMULATED:
                raise SkipTest(f"emulated: {NOT_EMULATED[kernel['name']]}")
            arguments.insert(0, program.path)
            program = Executable(str(emulate))
        output = program(*arguments, output=str, error=str, fail_on_error=False)
        print(output)
        reason = self.pages_unavailable()
        if program.returncode == PAGES_UNAVAILABLE and reason:
            raise SkipTest(f"{reason}: {output.strip()}")
        assert program.returncode == 0, f"exit code {program.returncode}"

        record = json.loads(record_file.read_text(encoding="utf-8").splitlines()[-1])
        assert record["status"] == "ok" and record["validation"]["passed"], (
            "the result is not valid"
        )
        for name, value in self.configuration().items():
            built = record["configuration"][name]
            assert built == value, f"built with {name}={built}"
        huge = record["pages"]["huge_coverage"]
        base = POLICIES[self.spec.variants["hugepages"].value]["pages"] == "none"
        assert huge == 0 if base else huge >= 0.99, f"{huge:.0%} on huge pages"

    def pages_unavailable(self):
        """Why the system reports that it cannot provide the policy's pages; None if it can."""
        if self.spec.satisfies("hugepages=hugetlbfs"):
            pools = Path("/sys/kernel/mm/hugepages").glob("hugepages-*/free_hugepages")
            if not any(int(pool.read_text()) for pool in pools):
                return "the hugetlb pools have no free page"
        if self.spec.satisfies("hugepages=thp"):
            mode = Path("/sys/kernel/mm/transparent_hugepage/enabled")
            if not mode.exists() or "[never]" in mode.read_text():
                return "transparent huge pages are disabled"
        return None


class LibraryProgramsPackage(ProgramsPackage):
    """Programs that measure a library: the provider of a virtual package."""

    variant(
        "prefetch",
        default="hardware",
        values=("hardware", "compiler"),
        multi=False,
        description="Prefetching in our code, not in the library",
    )

    #: The kind of library: its name in kernel.yaml, and Spack's virtual package.
    needs = ""
    virtual = ""

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_MICRO", True),
            self.define("PAGEWISE_NEEDS", self.needs),
            self.define("PAGEWISE_NEEDED_NAME", self.spec[self.virtual].name),
            self.define("PAGEWISE_NEEDED_LIBRARIES", self.needed_files()),
        ]

    def needed_files(self):
        """The library's files; an external names its file because distributions switch links."""
        library = self.spec[self.virtual]
        named = library.extra_attributes.get("library") if library.external else None
        return [named] if named else list(library.libs)

    def library_name(self):
        return self.spec[self.virtual].name

    def configuration(self):
        return {**super().configuration(), "library": self.library_name()}


class MiniPackage(LibraryUserPackage):
    """A part of kernels/mini: a mini-app, or a tool in its folder."""

    #: Its folder below kernels/mini.
    mini = ""

    # H5LT is in the high-level library; older versions write metadata without checksums.
    depends_on("hdf5@1.10.2:+hl")

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_MICRO", False),
            self.define("PAGEWISE_MINI", self.mini),
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
        ]


class EosUserPackage(MiniPackage, ProgramsPackage):
    """A mini-app that uses the table of the equation of state."""

    for same in ("@develop", *(f"@{known}" for known in RELEASES)):
        depends_on(f"pagewise-eos-table{same}", type=("build", "run"), when=same)

    def cmake_args(self):
        table = self.spec["pagewise-eos-table"].prefix.share.pagewise.join("helmholtz.h5")
        return [*super().cmake_args(), self.define("PAGEWISE_EOS_TABLE", table)]
