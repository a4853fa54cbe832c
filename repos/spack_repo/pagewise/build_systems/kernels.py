"""What the packages built from the folder kernels/ have in common."""

import json
import os
from pathlib import Path

import spack.environment
import spack.platforms
import spack.store
import spack.util.spack_yaml as syaml
from spack.package import (
    Executable,
    SkipTest,
    build_system_flags,
    conflicts,
    depends_on,
    requires,
    test_part,
    variant,
    version,
)
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

#: The sha256 of each release's archive, which `make dist` makes of the release's tag.
RELEASES = {
    "0.1.0": "489253e547c48211afe86bd1b6304c5adf45179eabc8975a87acacb0ccdc7fbd",
}

#: Exit code of a kernel whose page policy could not be had.
PAGES_UNAVAILABLE = 3

#: What Fujitsu's libmpg makes of memory by policy: XOS_MMM_L_HPAGE_TYPE. None: not the library's.
LIBMPG_TYPES = {"fjmpg": "hugetlbfs", "fjmpg-thp": "thp", "fjmpg-none": "none"}

#: Kernels whose check does not hold under an emulator, and why.
NOT_EMULATED = {"page_faults": "the emulator's own page faults are counted with the program's"}

#: Values of `simd`, and the processors that have vectors of such a width: None is every one.
SIMD_TARGETS = {
    "compiler": None,
    "scalar": None,
    "128": ("x86_64:", "aarch64:", "power8le:"),
    "256": ("sandybridge:", "bulldozer:", "x86_64_v3:", "neoverse_v1:"),
    "512": ("mic_knl:", "cannonlake:", "x86_64_v4:", "a64fx:"),
    "vla": ("a64fx:", "neoverse_v1:", "armv9.0a:"),
}

#: Levels that lack a width, and processors: those that are named most.
SIMD_LACKING = {
    "256": (":x86_64_v2",),
    "512": (":x86_64_v3", ":haswell", ":zen3"),
    "vla": ("x86_64:", "ppc64le:"),
}

#: Folders of kernels/ that concern only the packages which name them.
OF_SOME_PACKAGES = ("hdf5", "micro", "mini")


def variant_simd():
    """The width of vectors in timed code, for packages that compile or link it.

    A processor that lacks the width is refused when the specification is solved.
    """
    variant(
        "simd",
        default="compiler",
        values=tuple(SIMD_TARGETS),
        multi=False,
        description="Vectors: as the toolchain's flags say, none, so many bits, or of any length (SVE)",
    )
    for value, targets in SIMD_TARGETS.items():
        if targets is not None:
            told = (
                f"simd={value}: this target has no such vectors; target={', '.join(targets)} has "
                "(a colon: and those that descend from it)"
            )
            requires(*(f"target={one}" for one in targets), policy="any_of", when=f"simd={value}", msg=told)
            # Of a target that is named, the solver tells of a conflict more clearly than of what is required.
            for lacking in SIMD_LACKING.get(value, ()):
                conflicts(f"target={lacking}", when=f"simd={value}", msg=told)


def built_for(spec):
    """What a package's code is for: its target; `native` where the flags leave that to the compiler."""
    flags = spec.compiler_flags.get("cflags", ())
    return "native" if {"-march=native", "-mcpu=native"} & set(flags) else spec.target.name


def environment_has_targets():
    """Whether the roots of the environment are for several targets: only then modules' names tell them."""
    environment = spack.environment.active_environment()
    return environment is not None and len({built_for(one) for one in environment.concrete_roots()}) > 1


class KernelsPackage(CMakePackage):
    """A part of kernels/: one CMake project, of which each package builds its own targets.

    Released versions are built from the archive that `make dist` puts into the source mirror, `develop` from
    the checkout (develop: of an environment).
    """

    manual_download = True
    url = "file:///pagewise-kernels-0.1.0.tar"

    version("develop")
    for _release, _sha256 in RELEASES.items():
        version(_release, sha256=_sha256)

    variant("openmp", default=True, description="Threads by OpenMP")
    variant("papi", default=False, description="Count events with PAPI")

    # Ninja configures and builds these small projects faster than make does.
    generator("ninja")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("cmake@3.20:", type="build")

    requires(
        "platform=linux",
        msg="page policies and their proof are Linux's (madvise, hugetlbfs, /proc/self/smaps)",
    )

    # CMake must know the flags of the toolchain: they are part of what records say of a build.
    flag_handler = build_system_flags

    @property
    def download_instr(self):
        return f"The source mirror has no archive of release {self.version}: make dist VERSION={self.version}"

    #: What of OF_SOME_PACKAGES this package is built from: folders and files of kernels/.
    own_parts = ()

    def cmake_args(self):
        return [
            *self.cross_args(),
            self.define("BUILD_TESTING", False),
            self.define_from_variant("PAGEWISE_OPENMP", "openmp"),
            self.define_from_variant("PAGEWISE_PAPI", "papi"),
        ]

    def cross_args(self):
        """What CMake must be told where this machine is of another family than the target."""
        family = str(self.spec.target.family)
        if family == str(spack.platforms.host().default_target().family):
            return []
        return [self.define("CMAKE_SYSTEM_NAME", "Linux"), self.define("CMAKE_SYSTEM_PROCESSOR", family)]

    def detect_dev_src_change(self):
        """Whether a source is younger than the installation.

        Spack looks at all of dev_path, tests and other packages' sources too. The library is linked
        statically: each package holds it.
        """
        source = Path(self.spec.variants["dev_path"].value)
        _, record = spack.store.STORE.db.query_by_spec_hash(self.spec.dag_hash())
        rooms = [room for room in source.iterdir() if room.is_dir() and room.name not in OF_SOME_PACKAGES]
        built = [*source.glob("CMakeLists.txt"), *source.glob("*/CMakeLists.txt")]
        for room in [*rooms, *(source / name for name in self.own_parts)]:
            if room.is_file():
                built.append(room)
            for folder, below, files in os.walk(room):
                if "tests" in below:
                    below.remove("tests")
                # A folder's own time tells of a file that went or was renamed.
                built += [Path(folder), *(Path(folder, name) for name in files)]
        return any(path.lstat().st_mtime > record.installation_time for path in built)


class LibraryUserPackage(KernelsPackage):
    """What is built upon an installed libpagewise."""

    for setting in ("+openmp", "~openmp", "+papi", "~papi", "@develop", *(f"@{known}" for known in RELEASES)):
        depends_on(f"libpagewise{setting}", when=setting)

    def cmake_args(self):
        return [*super().cmake_args(), self.define("PAGEWISE_LIBRARY", False)]


class ProgramsPackage(LibraryUserPackage):
    """Programs in one configuration of pages, prefetching, stores and compiler.

    A package names its values of `prefetch`, and has a variant `stores` where its programs feel it.
    """

    variant(
        "hugepages",
        default="none",
        values=("none", "thp", "hugetlbfs", "fjmpg", "fjmpg-thp", "fjmpg-none"),
        multi=False,
        description="Page policy: base pages, transparent huge pages, reserved pool; or by Fujitsu's libmpg",
    )

    for _name, _vendor in (("llvm", "LLVM"), ("acfl", "Arm's compiler"), ("cce", "Cray's compiler")):
        for _language in ("c", "fortran"):
            conflicts(
                "prefetch=compiler",
                when=f"%{_language}={_name}",
                msg=f"{_vendor} has no switch that makes it insert prefetches; take %gcc, or software",
            )
    conflicts(
        "prefetch=compiler",
        when="target=a64fx %fortran=gcc",
        msg="GCC finds no prefetch to insert in code for SVE; take %fj, or prefetch=software",
    )
    for _policy in LIBMPG_TYPES:
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
        """The last part of a module's name: prefetch, stores; library, runtime, width, target if needed."""
        variants = self.spec.variants
        stores = variants["stores"].value if "stores" in variants else "regular"
        told = [f"{variants['prefetch'].value}-{stores}", self.library_name()]
        if "runtime" in variants and variants["runtime"].value != "compiler":
            told.append(variants["runtime"].value)
        if "simd" in variants and variants["simd"].value != "compiler":
            told.append(f"simd-{variants['simd'].value}")
        if environment_has_targets():
            told.append(built_for(self.spec))
        return "-".join(filter(None, told))

    @property
    def built_for(self):
        """What its code is for, for the module."""
        return built_for(self.spec)

    @property
    def built_for_ancestors(self):
        """The targets, by archspec, whose code runs wherever this one's does: they tell the more specific."""
        target = self.spec.target
        own = [target.name] if self.built_for != target.name else []
        return " ".join([*own, *(one.name for one in target.ancestors)])

    def library_name(self):
        """What the programs call in place of the system's own; empty for none."""
        variants = self.spec.variants
        named = variants["mathlib"].value if "mathlib" in variants else "libm"
        return "" if named == "libm" else named

    def libmpg_args(self):
        """Where Fujitsu's library of large pages is, for the policies that are its."""
        if self.spec.variants["hugepages"].value not in LIBMPG_TYPES:
            return []
        return [self.define("PAGEWISE_LIBMPG_ROOT", self.spec["fujitsu-libmpg"].prefix)]

    def configuration(self):
        """What every record of the programs must say of their build."""
        variants = self.spec.variants
        built = {name: variants[name].value for name in ("hugepages", "prefetch", "openmp", "papi")}
        return {**built, "stores": variants["stores"].value if "stores" in variants else "regular"}

    def test_kernels(self):
        """every installed kernel runs small, with the right result on the right pages"""
        descriptions = sorted(Path(self.prefix, "share/pagewise/kernels").glob("*.yaml"))
        programs = {path.name for path in Path(self.prefix.bin).glob("pw-*")}
        kernels = [syaml.load_config(path.read_text(encoding="utf-8")) for path in descriptions]
        assert kernels, f"{self.prefix} holds no kernel"
        assert {kernel["executable"] for kernel in kernels} == programs, "each program has its kernel.yaml"
        for kernel in kernels:
            with test_part(
                self, f"test_kernels_{kernel['name']}", purpose=f"run {kernel['executable']} small"
            ):
                self.run_small(kernel)

    def run_small(self, kernel):
        """Run a kernel as its kernel.yaml says under smoke, and check its record."""
        record_file = Path(f"{kernel['name']}.jsonl").absolute()
        arguments = [*map(str, kernel["smoke"]["arguments"]), "--record", str(record_file)]
        program = Executable(self.prefix.bin.join(kernel["executable"]))
        if (emulate := Path(self.prefix.share, "pagewise", "emulate")).exists():
            if reason := NOT_EMULATED.get(kernel["name"]):
                raise SkipTest(f"emulated: {reason}")
            arguments.insert(0, program.path)
            program = Executable(str(emulate))
        output = program(*arguments, output=str, error=str, fail_on_error=False)
        print(output)
        if program.returncode == PAGES_UNAVAILABLE and (lack := self.machine_lacks_pages()):
            raise SkipTest(f"{lack}: {output.strip()}")
        assert program.returncode == 0, f"exit code {program.returncode}"

        record = json.loads(record_file.read_text(encoding="utf-8").splitlines()[-1])
        assert record["status"] == "ok" and record["validation"]["passed"], "the result is not valid"
        for name, value in self.configuration().items():
            built = record["configuration"][name]
            assert built == value, f"built with {name}={built}"
        huge = record["pages"]["huge_coverage"]
        base = self.spec.variants["hugepages"].value in ("none", "fjmpg-none")
        assert huge == 0 if base else huge >= 0.99, f"{huge:.0%} on huge pages"

    def machine_lacks_pages(self):
        """Why this machine cannot give the policy's pages, by its own account; None when it can."""
        if self.spec.satisfies("hugepages=hugetlbfs"):
            pools = Path("/sys/kernel/mm/hugepages").glob("hugepages-*/free_hugepages")
            if not any(int(pool.read_text()) for pool in pools):
                return "no free huge page is in the machine's pools"
        if self.spec.satisfies("hugepages=thp"):
            mode = Path("/sys/kernel/mm/transparent_hugepage/enabled")
            if not mode.exists() or "[never]" in mode.read_text():
                return "transparent huge pages are off"
        return None


class LibraryProgramsPackage(ProgramsPackage):
    """Programs that measure a library: the provider of a virtual package."""

    variant(
        "prefetch",
        default="hardware",
        values=("hardware", "compiler"),
        multi=False,
        description="Prefetching in what is ours: the library does as it likes",
    )

    #: What kernel.yaml calls the kind of library, and Spack's name of it.
    needs = ""
    virtual = ""

    own_parts = ("micro",)

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_MICRO", True),
            self.define("PAGEWISE_NEEDS", self.needs),
            self.define("PAGEWISE_NEEDED_NAME", self.spec[self.virtual].name),
            self.define("PAGEWISE_NEEDED_LIBRARIES", self.needed_files()),
        ]

    def needed_files(self):
        """The library's files. Distributions switch them by links, so that an external names its own."""
        library = self.spec[self.virtual]
        told = library.extra_attributes.get("library") if library.external else None
        return [told] if told else list(library.libs)

    def library_name(self):
        return self.spec[self.virtual].name

    def configuration(self):
        return {**super().configuration(), "library": self.library_name()}


class MiniPackage(LibraryUserPackage):
    """A part of kernels/mini: a mini-app, or a tool in the folder of one."""

    #: Its folder below kernels/mini.
    mini = ""

    depends_on("hdf5")

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_MICRO", False),
            self.define("PAGEWISE_MINI", self.mini),
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
        ]


class EosUserPackage(MiniPackage, ProgramsPackage):
    """A mini-app that takes matter from the table of the equation of state."""

    for same in ("@develop", *(f"@{known}" for known in RELEASES)):
        depends_on(f"pagewise-eos-table{same}", type=("build", "run"), when=same)

    def cmake_args(self):
        table = self.spec["pagewise-eos-table"].prefix.share.pagewise.join("helmholtz.h5")
        return [*super().cmake_args(), self.define("PAGEWISE_EOS_TABLE", table)]
