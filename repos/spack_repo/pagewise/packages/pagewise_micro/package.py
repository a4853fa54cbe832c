from spack_repo.pagewise.build_systems.kernels import ConfigurationPackage
from spack_repo.pagewise.build_systems.simd import SIMD_TARGETS, variant_simd

from spack.package import *


class PagewiseMicro(ConfigurationPackage):
    """Micro-kernels in one configuration of pages, prefetching, stores and compiler."""

    variant(
        "prefetch",
        default="hardware",
        values=("hardware", "compiler", "software", "block"),
        multi=False,
        description="Prefetching: hardware (no instruction), compiler, software or block",
    )
    for _prefetch in ("software", "compiler"):
        conflicts(
            f"prefetch={_prefetch}",
            when="target=riscv64:",
            msg=f"prefetch={_prefetch} is not supported for riscv64; use hardware or block",
        )

    variant(
        "stores",
        default="regular",
        values=("regular", "nontemporal", "zfill"),
        multi=False,
        description="Store type: regular, nontemporal, or zfill (A64FX DC ZVA)",
    )

    requires(
        "target=x86_64:",
        "target=aarch64:",
        policy="any_of",
        when="stores=nontemporal",
        msg="stores=nontemporal needs x86_64 or aarch64; use stores=regular on other targets",
    )
    requires(
        "target=aarch64:",
        when="stores=zfill",
        msg="stores=zfill needs aarch64 (DC ZVA); use stores=nontemporal or regular elsewhere",
    )

    variant(
        "loop",
        default="explicit",
        values=("explicit", "compiler"),
        multi=False,
        description="Timed loops: explicit (vector intrinsics) or compiler (plain Fortran)",
    )
    requires(
        "loop=compiler",
        when="prefetch=compiler",
        msg="prefetch=compiler needs loop=compiler: only plain Fortran loops get its prefetches",
    )
    for _explicit in ("prefetch=software", "prefetch=block", "stores=nontemporal", "stores=zfill"):
        conflicts(
            "loop=compiler",
            when=_explicit,
            msg=f"{_explicit} needs loop=explicit: plain Fortran loops have no such instructions",
        )

    variant(
        "sector",
        default="none",
        values=("none", "isolate"),
        multi=False,
        description="Sectors of the caches: none, or ways for reused arrays (A64FX, %fj)",
    )
    requires(
        "loop=compiler prefetch=hardware target=a64fx %c,fortran=fj",
        when="sector=isolate",
        msg="sector=isolate needs target=a64fx %fj loop=compiler prefetch=hardware: its lines "
        "(!OCL) are in Fortran loops, and others ignore them",
    )

    variant(
        "mathlib",
        default="libm",
        values=("libm", "libmvec", "sleef", "armpl", "mass", "fujitsu"),
        multi=False,
        description="Mathematical functions: scalar libm, or a vector library",
    )
    depends_on("sleef", when="mathlib=sleef")

    variant(
        "runtime",
        default="compiler",
        values=("compiler", "libomp", "fjomplib"),
        multi=False,
        description="OpenMP runtime: the compiler's, libomp (LLVM's, for GCC), fjomplib (Fujitsu)",
    )
    depends_on("llvm-openmp", when="runtime=libomp")
    for _runtime in ("libomp", "fjomplib"):
        conflicts(f"runtime={_runtime}", when="~openmp", msg=f"runtime={_runtime} needs +openmp")
    requires(
        "%fortran=fj",
        when="runtime=fjomplib",
        msg="runtime=fjomplib is Fujitsu's library for its own code: use %fj",
    )
    requires(
        "%c,fortran=gcc",
        when="runtime=libomp",
        msg="runtime=libomp is for GCC's code; LLVM uses libomp with runtime=compiler",
    )

    for _later in ("sector=isolate", "runtime=fjomplib"):
        conflicts(_later, when="@:0.2.0", msg=f"{_later} needs a release after 0.2.0, or @develop")

    variant_simd()
    for _width in SIMD_TARGETS:
        depends_on(f"libpagewise simd={_width}", when=f"simd={_width}")

    variant(
        "needs",
        default="none",
        values=("none", "blas", "fftw"),
        multi=False,
        description="Build the kernels that call this library instead of those that call none",
    )
    depends_on("blas", when="needs=blas")
    depends_on("fftw-api@3", when="needs=fftw")
    for _library in ("blas", "fftw"):
        requires(
            "prefetch=hardware stores=regular loop=explicit sector=none mathlib=libm",
            when=f"needs={_library}",
            msg=f"needs={_library} compares libraries: leave out the variants of other kernels",
        )

    @property
    def needed(self):
        """The library that the kernels call, as a spec; None without."""
        virtual = {"blas": "blas", "fftw": "fftw-api"}.get(self.spec.variants["needs"].value)
        return self.spec[virtual] if virtual else None

    @property
    def library(self):
        mathlib = self.spec.variants["mathlib"].value
        own = "" if mathlib == "libm" else mathlib
        return self.needed.name if self.needed else own

    def cmake_args(self):
        args = [
            *super().cmake_args(),
            self.define("PAGEWISE_MICRO", True),
            self.define_from_variant("PAGEWISE_STORES", "stores"),
            self.define_from_variant("PAGEWISE_LOOP", "loop"),
            self.define_from_variant("PAGEWISE_MATHLIB", "mathlib"),
            self.define_from_variant("PAGEWISE_RUNTIME", "runtime"),
            self.define_from_variant("PAGEWISE_SIMD", "simd"),
            self.define_from_variant("PAGEWISE_SECTOR", "sector"),
        ]
        if self.needed:
            # An external names its file, because distributions switch links.
            attributes = self.needed.extra_attributes if self.needed.external else {}
            files = [attributes["library"]] if "library" in attributes else list(self.needed.libs)
            args.append(self.define_from_variant("PAGEWISE_NEEDS", "needs"))
            args.append(self.define("PAGEWISE_NEEDED_NAME", self.needed.name))
            args.append(self.define("PAGEWISE_NEEDED_LIBRARIES", files))
        return args
