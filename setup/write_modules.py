"""Run by `spack --env-dir ENVIRONMENT python`: write the modules of an environment to a new tree.

    write_modules.py TREE

The names in modulefiles/modules.yaml depend only on a package's spec. What depends on the environment is
added here: the set of flags of a root's toolchain, and its target if the roots have several.
"""

from __future__ import annotations

import sys
from typing import Any

import spack.config
import spack.environment
import spack.main
import spack.projections
import spack.spec


def flag_set(spec: spack.spec.Spec) -> str:
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
                return str(name)
            words = rest.split("-")[1:]
            return "-".join(word for word in words if word not in (spec.target.name, "other", "native"))
    return ""


def settings(roots: list[spack.spec.Spec]) -> dict[str, Any]:
    """Lmod's settings of the roots whose names need more than their specs."""
    projections = spack.config.get("modules:default:lmod:projections")
    several = len({root.package.built_for for root in roots}) > 1
    names: dict[str, str] = {}
    lmod: dict[str, Any] = {"projections": names}
    for root in roots:
        key = f"{root.name}/{root.dag_hash()}"
        flags = flag_set(root)
        if added := [word for word in (flags, root.package.built_for if several else "") if word]:
            names[key] = "-".join([spack.projections.get_projection(projections, root), *added])
        if flags:
            lmod[key] = {"environment": {"set": {"PAGEWISE_FLAGS": flags}}}
    return lmod


def main(tree: str) -> int:
    """Write the modules; returns Spack's exit code."""
    environment = spack.environment.active_environment()
    roots = [root for root in environment.concrete_roots() if hasattr(root.package, "built_for")]
    modules = {"default": {"roots": {"lmod": tree}, "lmod": settings(roots)}}
    spack.config.CONFIG.push_scope(spack.config.InternalConfigScope("pagewise-names", {"modules": modules}))
    refresh = spack.main.SpackCommand("module")
    print(refresh("lmod", "refresh", "--upstream-modules", "--yes-to-all", fail_on_error=False))
    if refresh.error is not None:
        raise refresh.error
    return int(refresh.returncode or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
