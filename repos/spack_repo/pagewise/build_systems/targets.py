"""Targets of kernels' code: SIMD widths, processors and sets of flags, for recipes and module names."""

import spack.config
import spack.environment
from spack.package import conflicts, requires, variant

#: Values of `simd`, and the targets that support them (None: all).
SIMD_TARGETS = {
    "compiler": None,
    "scalar": None,
    "128": ("x86_64:", "aarch64:", "power8le:"),
    "256": ("sandybridge:", "bulldozer:", "x86_64_v3:", "neoverse_v1:"),
    "512": ("mic_knl:", "cannonlake:", "x86_64_v4:", "a64fx:"),
    "vla": ("a64fx:", "neoverse_v1:", "armv9.0a:"),
}

#: Common targets that do not support a value of `simd`.
SIMD_UNSUPPORTED = {
    "256": (":x86_64_v2",),
    "512": (":x86_64_v3", ":haswell", ":zen3"),
    "vla": ("x86_64:", "ppc64le:"),
}


def variant_simd():
    """Declare the variant `simd`, the SIMD width of timed code, for packages that compile or link it.

    A target that does not support the width is refused by the solver.
    """
    variant(
        "simd",
        default="compiler",
        values=tuple(SIMD_TARGETS),
        multi=False,
        description="SIMD width: the toolchain's default, scalar, in bits, or vector length agnostic (SVE)",
    )
    for value, targets in SIMD_TARGETS.items():
        if targets is not None:
            error = (
                f"simd={value} is not supported by this target; use target={', '.join(targets)} "
                "(with a colon: or a newer one of the family)"
            )
            names = [f"target={name}" for name in targets]
            requires(*names, policy="any_of", when=f"simd={value}", msg=error)
            # If the spec names the target, Spack reports a conflict more clearly than a requirement.
            for name in SIMD_UNSUPPORTED.get(value, ()):
                conflicts(f"target={name}", when=f"simd={value}", msg=error)


def built_for(spec):
    """The target of a package's code, or `native` if the flags let the compiler detect it."""
    flags = spec.compiler_flags.get("cflags", ())
    return "native" if {"-march=native", "-mcpu=native"} & set(flags) else spec.target.name


def environment_has_targets():
    """Whether the environment's roots have several targets, so that module names must contain them."""
    environment = spack.environment.active_environment()
    return environment is not None and len(set(map(built_for, environment.concrete_roots()))) > 1


def flag_set(spec):
    """The set of flags that a package is built with, from the name of its toolchain; empty for our own sets.

    `pearc23` for `pagewise-gcc-a64fx-pearc23`: compiler and target are separate facts. Other toolchains,
    such as a site's, have their full name.
    """
    options = {f'{kind}=="{" ".join(spec.compiler_flags.get(kind, ()))}"' for kind in ("cflags", "fflags")}
    options.add(f"%fortran={spec['fortran'].name}")
    for name, entries in spack.config.get("toolchains", {}).items():
        if not isinstance(entries, str) and options <= {entry["spec"] for entry in entries}:
            prefix, _, rest = name.partition("-")
            if prefix != "pagewise":
                return name
            return "-".join(
                word for word in rest.split("-")[1:] if word not in (spec.target.name, "other", "native")
            )
    return ""
