"""What the packages built from the folder kernels/ have in common."""

import os
from pathlib import Path

import spack.store
from spack.package import build_system_flags, depends_on, requires, variant
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator


class KernelsPackage(CMakePackage):
    """A part of kernels/: one CMake project, of which each package builds its own targets."""

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

    def cmake_args(self):
        return [
            self.define("BUILD_TESTING", False),
            self.define_from_variant("PAGEWISE_OPENMP", "openmp"),
            self.define_from_variant("PAGEWISE_PAPI", "papi"),
        ]

    def detect_dev_src_change(self):
        """Whether a source is younger than the installation.

        Spack looks at all of dev_path, tests too. The library is linked statically: each package holds it.
        """
        source = Path(self.spec.variants["dev_path"].value)
        _, record = spack.store.STORE.db.query_by_spec_hash(self.spec.dag_hash())
        built = [source / "CMakeLists.txt"]
        for room in filter(Path.is_dir, source.iterdir()):
            for folder, below, files in os.walk(room):
                if "tests" in below:
                    below.remove("tests")
                # A folder's own time tells of a file that went or was renamed.
                built += [Path(folder), *(Path(folder, name) for name in files)]
        return any(path.lstat().st_mtime > record.installation_time for path in built)
