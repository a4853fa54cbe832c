import json
from pathlib import Path

import spack.util.spack_yaml as syaml
from spack.package import *
from spack_repo.pagewise.build_systems.kernels import KernelsPackage

#: Exit code of a kernel whose page policy could not be had.
PAGES_UNAVAILABLE = 3


class PagewiseMicro(KernelsPackage):
    """Micro-kernels of pagewise in one configuration of pages, prefetching, stores and compiler.

    Built from the checkout only (develop:).
    """

    version("develop")

    variant(
        "hugepages",
        default="none",
        values=("none", "thp", "hugetlbfs"),
        multi=False,
        description="Page policy: base pages, transparent huge pages, reserved pool",
    )
    variant(
        "prefetch",
        default="hardware",
        values=("hardware", "compiler", "software", "block"),
        multi=False,
        description="Prefetching: by the hardware alone, the compiler, the source ahead or by blocks",
    )
    variant(
        "stores",
        default="regular",
        values=("regular", "nontemporal"),
        multi=False,
        description="Type of the stores",
    )

    for setting in ("+openmp", "~openmp", "+papi", "~papi"):
        depends_on(f"libpagewise{setting}", when=setting)

    for language in ("c", "fortran"):
        conflicts(
            "prefetch=compiler",
            when=f"%{language}=llvm",
            msg="LLVM has no switch that makes it insert prefetches; take %gcc, or prefetch=software",
        )

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_LIBRARY", False),
            self.define("PAGEWISE_MICRO", True),
            self.define_from_variant("PAGEWISE_HUGEPAGES", "hugepages"),
            self.define_from_variant("PAGEWISE_PREFETCH", "prefetch"),
            self.define_from_variant("PAGEWISE_STORES", "stores"),
        ]

    def test_kernels(self):
        """every installed kernel runs small, with the right result on the right pages"""
        descriptions = sorted(Path(self.prefix, "share/pagewise/kernels").glob("*.yaml"))
        programs = {path.name for path in Path(self.prefix.bin).glob("pw-*")}
        kernels = [syaml.load_config(path.read_text(encoding="utf-8")) for path in descriptions]
        assert kernels, f"{self.prefix} holds no kernel"
        assert {kernel["executable"] for kernel in kernels} == programs, "each program has its kernel.yaml"
        for kernel in kernels:
            with test_part(
                self, f"test_kernels_{kernel['name']}", purpose=f"run {kernel['executable']} small"
            ):
                self.run_small(kernel)

    def run_small(self, kernel):
        """Run a kernel as its kernel.yaml says under smoke, and check its record."""
        record_file = Path(f"{kernel['name']}.jsonl").absolute()
        arguments = [*map(str, kernel["smoke"]["arguments"]), "--record", str(record_file)]
        program = Executable(self.prefix.bin.join(kernel["executable"]))
        output = program(*arguments, output=str, error=str, fail_on_error=False)
        print(output)
        if program.returncode == PAGES_UNAVAILABLE and (lack := self.machine_lacks_pages()):
            raise SkipTest(f"{lack}: {output.strip()}")
        assert program.returncode == 0, f"exit code {program.returncode}"

        record = json.loads(record_file.read_text(encoding="utf-8").splitlines()[-1])
        assert record["status"] == "ok" and record["validation"]["passed"], "the result is not valid"
        built = record["configuration"]
        for variant_name in ("hugepages", "prefetch", "stores"):
            assert built[variant_name] == self.spec.variants[variant_name].value, (
                f"built with {variant_name}={built[variant_name]}"
            )
        for variant_name in ("openmp", "papi"):
            assert built[variant_name] == self.spec.satisfies(f"+{variant_name}"), (
                f"built with {variant_name}={built[variant_name]}"
            )
        huge = record["pages"]["huge_coverage"]
        assert huge == 0 if self.spec.satisfies("hugepages=none") else huge >= 0.99, (
            f"{huge:.0%} on huge pages"
        )

    def machine_lacks_pages(self):
        """Why this machine cannot give the policy's pages, by its own account; None when it can."""
        if self.spec.satisfies("hugepages=hugetlbfs"):
            pools = Path("/sys/kernel/mm/hugepages").glob("hugepages-*/free_hugepages")
            if not any(int(pool.read_text()) for pool in pools):
                return "no free huge page is in the machine's pools"
        if self.spec.satisfies("hugepages=thp"):
            mode = Path("/sys/kernel/mm/transparent_hugepage/enabled")
            if not mode.exists() or "[never]" in mode.read_text():
                return "transparent huge pages are off"
        return None
