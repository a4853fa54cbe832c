"""What describes a configuration: PAGEWISE_*, which the runner reads. Imports nothing of Spack."""

#: Variants that describe every configuration, with the value of packages that do not declare them.
PLAIN = {"hugepages": "none", "prefetch": "hardware", "stores": "regular", "loop": "explicit"}

#: Variants whose default, `compiler` or `none`, is not named.
OPTIONAL = ("runtime", "simd", "sector")

SWITCHES = ("openmp", "papi", "mpi")


def facts_of(spec, package):
    """The values of a concrete spec by the variables' names after PAGEWISE_; none is empty."""
    chosen = {name: variant.value for name, variant in spec.variants.items()}
    fortran = spec["fortran"]
    values = {
        "PACKAGE": spec.name,
        "VERSION": spec.version,
        "COMPILER": f"{fortran.name}-{fortran.version}",
        **{name.upper(): chosen.get(name, plain) for name, plain in PLAIN.items()},
        "LIBRARY": package.library_name(),
        **{
            name.upper(): chosen.get(name, "")
            for name in OPTIONAL
            if chosen.get(name) not in ("compiler", "none")
        },
        **{name.upper(): "on" if chosen[name] else "off" for name in SWITCHES if name in chosen},
        "TARGET": package.built_for,
        "HASH": spec.dag_hash(),
        "BUILDER": "spack",
        "PREFIX": spec.prefix,
        "TARGET_ANCESTORS": package.built_for_ancestors,
    }
    return {name: str(value) for name, value in values.items() if str(value)}
