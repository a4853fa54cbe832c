from spack_repo.pagewise.build_systems.kernels import (
    SIMD_TARGETS,
    ConfigurationPackage,
    one_of,
    only_with,
    variant_simd,
)

from spack.package import *

MATHLIBS = ("libmvec", "sleef", "armpl", "mass", "fujitsu")


class PagewiseMicro(ConfigurationPackage):
    """Micro-kernels in one configuration of pages, prefetching, stores and compiler."""

    one_of("prefetch", "Prefetch instructions", "hardware", "compiler", "software", "block")
    one_of("stores", "Store type (zfill: A64FX DC ZVA)", "regular", "nontemporal", "zfill")
    one_of("loop", "Timed loops: vector intrinsics or plain Fortran", "explicit", "compiler")
    one_of("sector", "Cache ways for reused arrays (A64FX, %fj)", "none", "isolate")
    one_of("runtime", "OpenMP runtime", "compiler", "libomp", "fjomplib")
    one_of("needs", "Only the kernels that call this library", "none", "blas", "fftw")
    one_of("mathlib", "Vector library of mathematical functions", "libm", *MATHLIBS)
    variant_simd()

    depends_on("sleef", when="mathlib=sleef")
    depends_on("llvm-openmp", when="runtime=libomp")
    depends_on("blas", when="needs=blas")
    depends_on("fftw-api@3", when="needs=fftw")
    for _width in SIMD_TARGETS:
        depends_on(f"libpagewise simd={_width}", when=f"simd={_width}")

    for _prefetch in ("software", "compiler"):
        conflicts(
            f"prefetch={_prefetch}",
            when="target=riscv64:",
            msg=f"prefetch={_prefetch} is not supported for riscv64; use hardware or block",
        )
    only_with(
        "prefetch=compiler", "loop=compiler", reason="explicit loops get no prefetches of it"
    )
    depends_on("libpagewise+all_variants", when="loop=compiler")
    for _explicit in ("prefetch=software", "prefetch=block", "stores=nontemporal", "stores=zfill"):
        only_with(_explicit, "loop=explicit", reason="plain loops have no such instructions")
        depends_on("libpagewise+all_variants", when=_explicit)
    only_with("stores=nontemporal", "target=x86_64:", "target=aarch64:", reason="no other has it")
    only_with("stores=zfill", "target=aarch64:", reason="it is DC ZVA; use nontemporal elsewhere")
    only_with(
        "sector=isolate",
        "loop=compiler prefetch=hardware target=a64fx %c,fortran=fj",
        reason="its lines (!OCL) are in Fortran loops, and other compilers ignore them",
    )
    only_with("runtime=fjomplib", "+openmp %fortran=fj", reason="it is for code of that compiler")
    only_with("runtime=libomp", "+openmp %c,fortran=gcc", reason="LLVM uses it by default")
    for _library in ("needs=blas", "needs=fftw"):
        only_with(
            _library,
            "prefetch=hardware stores=regular loop=explicit sector=none mathlib=libm",
            reason="it compares libraries",
        )
    for _later in ("sector=isolate", "runtime=fjomplib"):
        conflicts(_later, when="@:0.2.0", msg=f"{_later} needs a release after 0.2.0, or @develop")

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
        args = [*super().cmake_args(), self.define("PAGEWISE_MICRO", True)]
        for name in ("stores", "loop", "mathlib", "runtime", "simd", "sector"):
            args.append(self.define_from_variant(f"PAGEWISE_{name.upper()}", name))
        if self.needed:
            # An external names its file, because distributions switch links.
            attributes = self.needed.extra_attributes if self.needed.external else {}
            files = [attributes["library"]] if "library" in attributes else list(self.needed.libs)
            args.append(self.define_from_variant("PAGEWISE_NEEDS", "needs"))
            args.append(self.define("PAGEWISE_NEEDED_NAME", self.needed.name))
            args.append(self.define("PAGEWISE_NEEDED_LIBRARIES", files))
        return args
