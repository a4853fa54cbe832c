"""Targets of kernels' code: SIMD widths and processors."""

from spack.package import *

#: Values of `simd`, and the targets that support them (None: all), the preferred ones first.
SIMD_TARGETS = {
    "compiler": None,
    "scalar": None,
    "128": ("x86_64:", "aarch64:", "power8le:"),
    "256": ("x86_64_v3:", "sandybridge:", "bulldozer:", "neoverse_v1:"),
    "512": ("x86_64_v4:", "mic_knl:", "cannonlake:", "a64fx:"),
    "vla": ("a64fx:", "neoverse_v1:", "armv9.0a:"),
}

#: Common targets that do not support a value of `simd`.
SIMD_UNSUPPORTED = {
    "256": (":x86_64_v2",),
    "512": (":x86_64_v3", ":haswell", ":zen3"),
    "vla": ("x86_64:", "ppc64le:"),
}


def variant_simd():
    """Declare the variant `simd`, the SIMD width of timed code, which a package compiles or links.

    A target that does not support the width is refused by the solver.
    """
    variant(
        "simd",
        default="compiler",
        values=tuple(SIMD_TARGETS),
        multi=False,
        description="SIMD width: the toolchain's, scalar, in bits, or agnostic (SVE)",
    )
    for value, targets in SIMD_TARGETS.items():
        if targets is not None:
            error = (
                f"simd={value} is not supported by this target; use target={', '.join(targets)} "
                "(with a colon: or a newer one of the family)"
            )
            names = [f"target={name}" for name in targets]
            requires(*names, policy="any_of", when=f"simd={value}", msg=error)
            # If the spec names the target, Spack reports conflicts more clearly than requirements.
            for name in SIMD_UNSUPPORTED.get(value, ()):
                conflicts(f"target={name}", when=f"simd={value}", msg=error)


def built_for(spec):
    """The target of a package's code, or `native` if the flags let the compiler detect it."""
    flags = spec.compiler_flags.get("cflags", ())
    return "native" if {"-march=native", "-mcpu=native"} & set(flags) else spec.target.name
