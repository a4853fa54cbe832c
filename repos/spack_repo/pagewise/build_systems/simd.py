"""SIMD widths of the kernels' code."""

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
    """Declare the variant `simd`; a target that does not support the width is refused."""
    variant(
        "simd",
        default="compiler",
        values=tuple(SIMD_TARGETS),
        multi=False,
        description="SIMD width: the toolchain's, scalar, in bits, or agnostic (SVE)",
    )
    for width, targets in SIMD_TARGETS.items():
        if targets is not None:
            error = f"simd={width} is not supported by this target; use target="
            error += f"{', '.join(targets)} (with a colon: or a newer one of the family)"
            names = [f"target={target}" for target in targets]
            requires(*names, policy="any_of", when=f"simd={width}", msg=error)
            # If the spec names the target, Spack reports conflicts more clearly than requirements.
            for target in SIMD_UNSUPPORTED.get(width, ()):
                conflicts(f"target={target}", when=f"simd={width}", msg=error)
