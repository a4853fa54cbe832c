"""Base classes of the packages that are built from the folder kernels/."""

import json
import re
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *

#: The commit of each release. A release never changes: a correction is another version.
RELEASES = {
    "0.2.0": "08ebc01806c72a35d14c540240ac32de2f576e87",
    "0.1.0": "da046ae328555136a91c07012d023ae886eb3ff2",
}

#: What the library and a package that links it have in common.
SAME = ("+openmp", "~openmp", "+papi", "~papi")

#: Variants that describe every configuration, with the value of packages that do not declare them.
PLAIN = {"hugepages": "none", "prefetch": "hardware", "stores": "regular", "loop": "explicit"}

#: The clone with these recipes and the sources.
CLONE = Path(__file__).resolve().parents[4]


def facts_of(name):
    """The content of a data file of the kernels."""
    return json.loads(Path(CLONE, "kernels", name).read_text(encoding="utf-8"))


#: The page policies by name: the kind of their pages, and what a module sets. With libmpg, the
#: first touch places a page (Feldman et al., PEARC '23, appendix A), and freed memory is returned
#: and reused as without it.
POLICIES = {policy["name"]: policy for policy in facts_of("pages/policies.json")}
BY_LIBMPG = tuple(name for name, policy in POLICIES.items() if policy.get("library") == "libmpg")

#: Values of `simd`, and the targets that support them (None: all), the preferred ones first.
SIMD_TARGETS = {
    "compiler": None,
    "scalar": None,
    "128": ("x86_64:", "aarch64:", "power8le:"),
    "256": ("x86_64_v3:", "sandybridge:", "bulldozer:", "neoverse_v1:"),
    "512": ("x86_64_v4:", "mic_knl:", "cannonlake:", "a64fx:"),
    "vla": ("a64fx:", "neoverse_v1:", "armv9.0a:"),
}

#: Exit code of a kernel whose page policy is unavailable.
PAGES_UNAVAILABLE = 3

#: Kernels whose validation fails in an emulator, and why.
NOT_EMULATED = {"page_faults": "the emulator's page faults are counted with the program's"}


class Address:
    """The project's address, which has no constant yet: the clone with the recipes, or its origin.

    Spack's clones of recipes are shallow, and have only the newest sources. Read only when Spack
    needs it; `package_attributes` of a package replaces it (docs/how-to/release.md).
    """

    def __get__(self, package, owner):
        if not (CLONE / ".git" / "shallow").exists():
            return str(CLONE)
        origin = ("-C", str(CLONE), "config", "--get", "remote.origin.url")
        return which("git", required=True)(*origin, output=str).strip()


class Homepage(Address):
    """The same without a password."""

    def __get__(self, package, owner):
        return re.sub("//[^/@]*@", "//", super().__get__(package, owner))


def one_of(name, description, *values):
    """Declare a variant with one of these values; the first is the default."""
    variant(name, default=values[0], values=values, multi=False, description=description)


def only_with(value, *specs, reason):
    """Refuse a variant's value unless the package satisfies one of the specs."""
    error = f"{value} needs {' or '.join(specs)} ({reason})"
    requires(*specs, policy="any_of", when=value, msg=error)


def variant_simd():
    """Declare the variant `simd`; a target that does not support the width is refused."""
    one_of("simd", "SIMD width: the toolchain's, scalar, bits, agnostic (SVE)", *SIMD_TARGETS)
    for width, targets in SIMD_TARGETS.items():
        if targets is not None:
            names = [f"target={target}" for target in targets]
            only_with(f"simd={width}", *names, reason="or a newer processor of the family")


class KernelsPackage(CMakePackage):
    """A part of kernels/, which is one CMake project; each package builds its own targets."""

    homepage = Homepage()
    git = Address()

    license("Apache-2.0")

    version("develop", branch="main")
    for _release, _commit in RELEASES.items():
        version(_release, commit=_commit)

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
        args = [
            self.define("BUILD_TESTING", False),
            self.define_from_variant("PAGEWISE_OPENMP", "openmp"),
            self.define_from_variant("PAGEWISE_PAPI", "papi"),
        ]
        family = str(self.spec.target.family)
        if family != str(host_platform().default_target().family):
            args.append(self.define("CMAKE_SYSTEM_NAME", "Linux"))
            args.append(self.define("CMAKE_SYSTEM_PROCESSOR", family))
        return args

    def mini_args(self, folder):
        """CMake's arguments of a package that builds a folder of kernels/mini, with HDF5."""
        return [
            self.define("PAGEWISE_LIBRARY", False),
            self.define("PAGEWISE_MICRO", False),
            self.define("PAGEWISE_MINI", folder),
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
        ]


def depends_on_same(package, *settings, **options):
    """Depend on a package of this project in the same version and with the same settings."""
    for setting in ("@develop", *(f"@{release}" for release in RELEASES), *settings):
        depends_on(f"{package}{setting}", when=setting, **options)


class ConfigurationPackage(KernelsPackage):
    """Programs in one configuration of pages, prefetching, stores, loops and compiler.

    A package declares `prefetch` with its values, and `stores` and `loop` if its programs are
    sensitive to them.
    """

    one_of("hugepages", "Page policy: base pages, THP, hugetlb pool, or libmpg", *POLICIES)

    depends_on_same("libpagewise", *SAME)
    for _policy in BY_LIBMPG:
        depends_on("fujitsu-libmpg", when=f"hugepages={_policy}")

    for _file in sorted(Path(CLONE, "kernels/cmake/compilers").glob("*.json")):
        _compiler, _targets = facts_of(_file), [""]
        for _prefetch in (each.get("prefetch") for each in _compiler["fortran"].values()):
            if _prefetch:
                _targets = [f"target={name} " for name in _prefetch.get("not_for", ())]
        for _target in _targets:
            _where = f"{_target}%fortran={_compiler['package']}"
            _error = f"there is no prefetch=compiler with {_where}; use prefetch=software"
            conflicts("prefetch=compiler", when=_where, msg=_error)

    def cmake_args(self):
        args = [
            *super().cmake_args(),
            self.define("PAGEWISE_LIBRARY", False),
            self.define_from_variant("PAGEWISE_HUGEPAGES", "hugepages"),
            self.define_from_variant("PAGEWISE_PREFETCH", "prefetch"),
        ]
        if self.spec.variants["hugepages"].value in BY_LIBMPG:
            args.append(self.define("PAGEWISE_LIBMPG_ROOT", self.spec["fujitsu-libmpg"].prefix))
        return args

    #: The library that the programs call instead of the system's; empty for none.
    library = ""

    @property
    def built_for(self):
        """The target of its code, or `native` if the flags let the compiler detect it."""
        flags = self.spec.compiler_flags.get("cflags", ())
        native = {"-march=native", "-mcpu=native"} & set(flags)
        return "native" if native else self.spec.target.name

    @property
    def facts(self):
        """What describes the configuration: PAGEWISE_*, which the runner reads; none is empty."""
        variants = {name: variant.value for name, variant in self.spec.variants.items()}
        target, fortran = self.spec.target, self.spec["fortran"]
        values = {
            "package": self.spec.name,
            "version": self.spec.version,
            "compiler": f"{fortran.name}-{fortran.version}",
            **{name: variants.get(name, plain) for name, plain in PLAIN.items()},
            "library": self.library,
        }
        for name in ("runtime", "simd", "sector"):
            if variants.get(name) not in ("compiler", "none"):
                values[name] = variants.get(name, "")
        for name in ("openmp", "papi", "mpi"):
            if name in variants:
                values[name] = "on" if variants[name] else "off"
        values["target"] = self.built_for
        values["hash"] = self.spec.dag_hash()
        values["builder"] = "spack"
        values["prefix"] = self.spec.prefix
        # By which modules can be ordered.
        ancestors = [ancestor.name for ancestor in target.ancestors]
        own = [] if self.built_for == target.name else [target.name]
        values["target_ancestors"] = " ".join([*own, *ancestors])
        return {name: str(value) for name, value in values.items() if str(value)}

    @property
    def module_tail(self):
        """End of a module's name: prefetch-stores; if set loop, library, SIMD and others."""
        facts = self.facts
        parts = [facts["prefetch"], facts["stores"]]
        if facts["loop"] != "explicit":
            parts.append(f"loop-{facts['loop']}")
        if facts["openmp"] == "off":
            parts.append("serial")
        parts += [facts[name] for name in ("library", "runtime") if name in facts]
        parts += [f"{name}-{facts[name]}" for name in ("simd", "sector") if name in facts]
        return "-".join(parts)

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        for name, value in self.facts.items():
            env.set(f"PAGEWISE_{name.upper()}", value)
        policy = self.spec.variants["hugepages"].value
        for name, value in POLICIES[policy].get("environment", {}).items():
            env.set(name, value)
        if policy in BY_LIBMPG:
            env.prepend_path("LD_LIBRARY_PATH", self.spec["fujitsu-libmpg"].prefix.lib64)

    def test_kernels(self):
        """run every installed kernel at a small size, and check its result and pages"""
        descriptions = sorted(Path(self.prefix, "share/pagewise/kernels").glob("*.yaml"))
        if self.spec.satisfies("@:0.2.0"):
            raise SkipTest("the descriptions of releases up to 0.2.0 are not JSON")
        kernels = [json.loads(path.read_text(encoding="utf-8")) for path in descriptions]
        programs = {path.name for path in Path(self.prefix.bin).glob("pw-*")}
        assert programs and {kernel["executable"] for kernel in kernels} == programs
        for kernel in kernels:
            name = kernel["name"]
            with test_part(self, f"test_kernels_{name}", purpose=f"run {kernel['executable']}"):
                self.run_small(kernel)

    def run_small(self, kernel):
        """Run a kernel with the arguments of `smoke` in its kernel.yaml, and check its record."""
        record_file = Path(f"{kernel['name']}.jsonl").absolute()
        arguments = [*kernel["smoke"]["arguments"], "--record", str(record_file)]
        program = Executable(self.prefix.bin.join(kernel["executable"]))
        emulate = Path(self.prefix, "share/pagewise/emulate")
        if emulate.exists():
            if kernel["name"] in NOT_EMULATED:
                raise SkipTest(f"emulated: {NOT_EMULATED[kernel['name']]}")
            arguments.insert(0, program.path)
            program = Executable(str(emulate))
        output = program(*arguments, output=str, error=str, fail_on_error=False)
        print(output)
        if program.returncode == PAGES_UNAVAILABLE:
            raise SkipTest(output.strip())
        assert program.returncode == 0, f"exit code {program.returncode}"

        record = json.loads(record_file.read_text(encoding="utf-8").splitlines()[-1])
        assert record["status"] == "ok" and record["validation"]["passed"], "wrong result"
        switches = {True: "on", False: "off"}
        for name in (*PLAIN, "openmp", "papi", "runtime", "simd", "sector"):
            if name in self.facts:
                built = record["configuration"][name]
                built = switches.get(built, built)
                assert built == self.facts[name], f"built with {name}={built}"
        huge = record["pages"]["huge_coverage"]
        base = POLICIES[self.spec.variants["hugepages"].value]["pages"] == "none"
        assert huge == 0 if base else huge >= 0.99, f"{huge:.0%} on huge pages"
