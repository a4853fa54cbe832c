"""Separate checkouts for tests with Spack: sources are copied, Spack and the Python environment shared."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).parents[2]
STATE = ROOT / ".pagewise"
sys.path.append(str(ROOT / "setup"))
RECIPES = "repos/spack_repo/pagewise/build_systems/kernels.py"
VERSION = "9.8.7"
#: The pinned packages of Spack, as a repository.
BUILTIN = (STATE / "spack-packages" / "repos" / "spack_repo" / "builtin").resolve()
#: The only micro-kernel in the release of these tests, so that it builds quickly.
KERNEL = "pointer_chase"
#: The micro-kernels in the checkouts, one per form: stores, sums, a C loop, loops in registers, in caches.
KERNELS = ("schoenauer_triad", "stream_dot", KERNEL, "fma_chains", "blocked_dgemm")
#: The Python packages that `pagewise run` and Spack need, which are all that these tests install.
PYTHON_PACKAGES = {
    *("cffi", "click", "clingo", "markdown-it-py", "mdurl", "pycparser", "pygments", "pyyaml", "rich"),
    *("rich-click", "typing-extensions"),
}
#: Large packages that `pagewise compare` does not need.
EXCLUDED = {"duckdb", "lxml", "polars", "polars-runtime-32", "reframe-hpc"}
PINS = "setup/requirements.lock"
#: A file of kernels that the runner links to.
POLICIES = "kernels/pages/policies.json"
EMULATED = STATE / "emulated-a64fx"
A64FX_KERNELS = ("stream_triad", "stream_dot", "gather")
#: The SVE vector lengths of the emulated processor, in bits.
A64FX_LENGTHS = (128, 256, 512)


def copy_checkout(root: Path, *names: str) -> Path:
    """Copy these files and folders of the checkout to root, with an empty state."""
    for name in names:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "spack.lock", ".spack-env")
            shutil.copytree(source, root / name, symlinks=True, ignore=ignored)
        else:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, root / name)
    (root / ".pagewise" / "stamps").mkdir(parents=True)
    return link_sites(root)


def link_sites(root: Path) -> Path:
    """Make all environments of a checkout include its site, as the set-up does."""
    links = root / ".pagewise" / "sites"
    links.mkdir(exist_ok=True)
    for name in ("default", *(file.parent.name for file in root.glob("envs/*/spack.yaml"))):
        (links / name).symlink_to(root / ".pagewise" / "site")
    return root


def keep_kernels(root: Path, *names: str) -> Path:
    """Remove the other micro-kernels from a copy."""
    for kernel in (root / "kernels" / "micro").glob("*/kernel.yaml"):
        if kernel.parent.name not in names:
            shutil.rmtree(kernel.parent)
    return root


def write_script(file: Path, text: str) -> None:
    """Write an executable file."""
    file.write_text(text)
    file.chmod(0o755)


def disassembly(*objects: Path) -> str:
    """The disassembly of code for aarch64."""
    return succeed("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", *objects).stdout


def run(*command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command with these settings, without the caller's PAGEWISE_ variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PAGEWISE_")}
    return subprocess.run(
        [str(word) for word in command],
        env={**inherited, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def succeed(*command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must end with code 0."""
    done = run(*command, **settings)
    assert done.returncode == 0, f"{done.args}: {done.stdout}"
    return done


@pytest.fixture(scope="session")
def checkout(spack_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with few kernels, in which Spack is set up and nothing is built."""
    root = tmp_path_factory.mktemp("checkout")
    folders = ("setup", "envs", "repos", "modulefiles", "kernels", "runners")
    copy_checkout(root, *folders, "spack.yaml", "Makefile", "pagewise")
    keep_kernels(root, *KERNELS)
    for shared in ("spack", "spack-packages", "venv", "site", "setup.json", "misc-cache", "stamps/spack"):
        (root / ".pagewise" / shared).symlink_to((STATE / shared).resolve())
    return root


@pytest.fixture(scope="session")
def built(checkout: Path) -> Path:
    """The checkout with the quick environment built."""
    succeed(checkout / "setup" / "stack", "quick")
    return checkout


#: Git with a name, in folders of any user, and without the user's configuration.
GIT = {
    **{f"GIT_{role}_{name}": "x" for role in ("AUTHOR", "COMMITTER") for name in ("NAME", "EMAIL")},
    **{f"GIT_CONFIG_{name}": "/dev/null" for name in ("GLOBAL", "SYSTEM")},
    **{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"},
}


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder."""
    done = succeed("git", "-C", folder, *arguments, **GIT)
    return done.stdout


def release(root: Path, version: str) -> None:
    """Release a checkout's kernels and runner as in docs/how-to/release.md."""
    path = f"{STATE / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    succeed(root / "setup" / "release", version, **GIT, PATH=path)
    git(root, "tag", "--force", f"v{version}")


def sections(root: Path, page: str) -> dict[str, list[str]]:
    """The indented paragraphs of a how-to page, by heading."""
    _, *parts = re.split(r"^#+ (.*)\n", (root / f"docs/how-to/{page}.md").read_text(), flags=re.MULTILINE)
    blocks = (re.findall(r"(?<=\n\n)(?: {4}.*\n)+", f"\n{body}") for body in parts[1::2])
    named = zip(parts[::2], blocks, strict=True)
    return {heading: [textwrap.dedent(block) for block in actual] for heading, actual in named if actual}


def printed(root: Path, page: str, section: str, values: dict[str, str]) -> list[str]:
    """The indented paragraphs of a section, with a reader's values of placeholders and folders."""
    blocks = sections(root, page)[section]
    for word, value in values.items():
        blocks = [block.replace(word, value) for block in blocks]
    assert not re.findall(r"<[a-z][^<>]*>", re.sub(r" # .*", "", "".join(blocks)))
    return blocks


def pins() -> dict[str, str]:
    """The entries of the lock of Python packages, by package; several versions are joined."""
    entries: dict[str, str] = {}
    for entry in re.split(r"^(?=[a-z])", (ROOT / PINS).read_text(), flags=re.MULTILINE):
        name = re.split(r"[=\s]", entry)[0]
        entries[name] = entries.get(name, "") + entry
    return entries


def pin_only(root: Path, packages: set[str]) -> None:
    """Reduce the lock of Python packages of a checkout to these."""
    (root / PINS).write_text("".join(entry for name, entry in pins().items() if name in packages))


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the project with a release, made as in docs/how-to/release.md."""
    root = tmp_path_factory.mktemp("origin")
    folders = ("changes", "docs/how-to", "setup", "envs", "repos", "modulefiles", "kernels", "runners")
    files = ("spack.yaml", "spack-repo-index.yaml", "Makefile", "pagewise", "LICENSE", ".gitignore")
    copy_checkout(root, *folders, *files, "CHANGELOG.md", "CITATION.cff", "towncrier.toml")
    keep_kernels(root, KERNEL)
    # The default of `make deploy` and others, as quick to build.
    quick = (root / "envs/release-quick/spack.yaml").read_text()
    (root / "envs/release/spack.yaml").write_text(quick.replace("sites/release-quick", "sites/release"))
    pin_only(root, PYTHON_PACKAGES)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "Add unreleased files")
    release(root, VERSION)
    return root


@pytest.fixture
def clone(origin: Path, tmp_path: Path) -> Callable[..., Path]:
    """Clone the repository with the release."""

    def make(name: str, *options: str) -> Path:
        folder = tmp_path / name
        git(tmp_path, "clone", "--quiet", *options, f"file://{origin}", str(folder))
        return folder

    return make


def set_up(folder: Path) -> Path:
    """Add the set-up's results to a clone: shared, except for the facts about the machine."""
    (folder / ".pagewise" / "stamps").mkdir(parents=True, exist_ok=True)
    for shared in ("spack", "spack-packages", "venv", "misc-cache", "stamps/spack"):
        (folder / ".pagewise" / shared).symlink_to((STATE / shared).resolve())
    shutil.copy2(STATE / "setup.json", folder / ".pagewise" / "setup.json")
    shutil.copytree(STATE / "site", folder / ".pagewise" / "site")
    # Without it, Spack clones and indexes its builtin packages for commands outside of environments.
    (folder / ".pagewise" / "spack-config").mkdir(exist_ok=True)
    (folder / ".pagewise" / "spack-config" / "include.yaml").write_text(f"include:\n- {folder}/envs/common\n")
    return link_sites(folder)


@pytest.fixture(scope="session")
def locked(spack_ready: None, origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with a lock of release-quick for this machine, in the folder `lock`."""
    folder = tmp_path_factory.mktemp("maker") / "clone"
    git(origin, "clone", "--quiet", f"file://{origin}", str(folder))
    succeed(set_up(folder) / "setup" / "lock", "release-quick", "host", folder / "lock")
    return folder


def spack(
    checkout: Path, folder: Path, *arguments: str | Path, fails: bool = False, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run Spack in an environment's folder, with the checkout's settings; it succeeds, or fails."""
    script = '. "$PAGEWISE_ROOT/setup/spack-env.sh" && "$PAGEWISE_ROOT/.pagewise/spack/bin/spack" -D "$@"'
    words = ("bash", "-c", script, "spack", folder, *arguments)
    done = run(*words, PAGEWISE_ROOT=str(checkout), **settings)
    assert (done.returncode != 0) == fails, done.stdout
    return done


def environment(checkout: Path, name: str, *specs: str) -> Path:
    """Add an environment with these specs."""
    folder = checkout / "envs" / name
    folder.mkdir()
    head = (checkout / "envs" / "quick" / "spack.yaml").read_text().partition("  definitions:\n")[0]
    (folder / "spack.yaml").write_text(f"{head}  specs: {json.dumps(specs)}\n  view: false\n")
    return folder


def lock_of(folder: Path) -> dict[str, Any]:
    """An environment's lock."""
    return dict(json.loads((folder / "spack.lock").read_text()))


def roots(folder: Path) -> list[dict[str, Any]]:
    """The roots in an environment's lock."""
    lock = lock_of(folder)
    return [lock["concrete_specs"][root["hash"]] for root in lock["roots"]]


def installed(checkout: Path, environment: str) -> dict[Path, dict[str, Any]]:
    """The roots in an environment's lock, by their installation folders."""
    opt = checkout / ".pagewise" / "opt"
    return {
        opt / spec["name"] / f"{spec['version']}-{spec['hash']}": spec
        for spec in roots(checkout / "envs" / environment)
    }


def emulate(program: Path, *arguments: str, bits: int = 512) -> subprocess.CompletedProcess[str]:
    """Run an installed program for A64FX with the installed launcher."""
    launcher = program.parents[1] / "share" / "pagewise" / "emulate"
    return run(launcher, "--vector-bits", str(bits), program, *arguments)


def spack_settings(folder: Path, **sections: Any) -> dict[str, str]:
    """Write sections of a user's Spack to a folder; returns the variables that make Spack read only these."""
    folder.mkdir(exist_ok=True)
    for name, section in sections.items():
        (folder / f"{name}.yaml").write_text(json.dumps({name: section}))
    return {
        "SPACK_USER_CONFIG_PATH": str(folder),
        "SPACK_USER_CACHE_PATH": f"{folder}/cache",
        "SPACK_SYSTEM_CONFIG_PATH": f"{folder}/none",
        "SPACK_PYTHON": str(STATE / "venv" / "bin" / "python"),
    }


STAND_IN = Path(__file__).parent / "stand_ins" / "compiler.py"
AARCH64 = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64")


def stand_ins(folder: Path, *names: str, native: bool = False) -> Path:
    """Add stand-ins for these compilers to a folder; they call GCC, or the cross compilers for aarch64."""
    drivers = {language: shutil.which(name) for language, name in (("c", "gcc"), ("fortran", "gfortran"))}
    if not native:
        detected = json.loads((EMULATED / "packages.yaml").read_text())["packages"]
        drivers = detected["gcc"]["externals"][0]["extra_attributes"]["compilers"]
    (folder / "delegates.json").write_text(json.dumps(drivers))
    for name in names:
        (folder / name).symlink_to(STAND_IN)
    return folder


def configure(
    folder: Path, c: str, fortran: str, *options: str, generator: str = "Ninja"
) -> subprocess.CompletedProcess[str]:
    """CMake's answer to options, with compilers in a folder, in its folder build."""
    compilers = (f"-DCMAKE_C_COMPILER={folder / c}", f"-DCMAKE_Fortran_COMPILER={folder / fortran}")
    words = ("-G", generator, "-S", ROOT / "kernels", "-B", folder / "build", "-DBUILD_TESTING=OFF")
    # A stand-in leaves the output of CMake's question for the target in the current folder.
    return run("env", "-C", folder, "cmake", *words, *compilers, *options)


@pytest.fixture(scope="session")
def small(
    spack_ready: None, unavailable: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A checkout with few kernels, in which Spack and the emulated A64FX are set up."""
    if not (EMULATED / "packages.yaml").exists():
        unavailable("needs cross compilers for aarch64 and qemu-user (make setup-tests)")
    root = copy_checkout(
        tmp_path_factory.mktemp("a64fx"), "setup", "envs", "repos", "modulefiles", "kernels", "spack.yaml"
    )
    # One kernel per kind of code: vectors and stores, sums, indirect access.
    keep_kernels(root, *A64FX_KERNELS)
    shared = ("spack", "spack-packages", "venv", "setup.json", "misc-cache", "stamps/spack", "emulated-a64fx")
    for name in shared:
        (root / ".pagewise" / name).symlink_to((STATE / name).resolve())
    (root / ".pagewise" / "site").symlink_to(EMULATED.resolve())
    return root
