from spack_repo.pagewise.build_systems.kernels import ProgramsPackage
from spack_repo.pagewise.build_systems.targets import SIMD_TARGETS, variant_simd

from spack.package import *


class PagewiseMicro(ProgramsPackage):
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
        "target=a64fx",
        when="sector=isolate",
        msg="sector=isolate needs target=a64fx: other processors have no sector cache",
    )
    for _language in ("c", "fortran"):
        requires(
            f"%{_language}=fj",
            when="sector=isolate",
            msg="sector=isolate needs Fujitsu's compiler (%fj): others ignore its lines (!OCL)",
        )
    requires(
        "loop=compiler prefetch=hardware",
        when="sector=isolate",
        msg="sector=isolate needs loop=compiler prefetch=hardware: its lines are in Fortran loops",
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
    for _language in ("c", "fortran"):
        requires(
            f"%{_language}=gcc",
            when="runtime=libomp",
            msg="runtime=libomp is for GCC's code; LLVM uses libomp with runtime=compiler",
        )

    for _later in ("sector=isolate", "runtime=fjomplib"):
        conflicts(_later, when="@:0.2.0", msg=f"{_later} needs a release after 0.2.0, or @develop")

    variant_simd()
    for _width in SIMD_TARGETS:
        depends_on(f"libpagewise simd={_width}", when=f"simd={_width}")

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_MICRO", True),
            self.define_from_variant("PAGEWISE_STORES", "stores"),
            self.define_from_variant("PAGEWISE_LOOP", "loop"),
            self.define_from_variant("PAGEWISE_MATHLIB", "mathlib"),
            self.define_from_variant("PAGEWISE_RUNTIME", "runtime"),
            self.define_from_variant("PAGEWISE_SIMD", "simd"),
            self.define_from_variant("PAGEWISE_SECTOR", "sector"),
        ]

    def configuration(self):
        values = {name: self.spec.variants[name].value for name in ("simd", "runtime", "sector")}
        plain = ("compiler", "none")
        chosen = {name: value for name, value in values.items() if value not in plain}
        return {**super().configuration(), **chosen}
