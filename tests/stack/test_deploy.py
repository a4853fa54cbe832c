"""A centre's deployment: three users, two releases, one removed; another instance on top of it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import KERNEL, RECIPES, ROOT, STATE, VERSION, dist, git, run

#: Accounts that every Debian has, and a group that is theirs here for the length of a command.
INSTALLER, MEMBER, OUTSIDER = "daemon", "games", "nobody"
GROUP = "users"
NEXT = "9.8.8"
LMOD = "/usr/share/lmod/lmod/init/bash"


@dataclass(frozen=True)
class Centre:
    """Where it is, and how commands go there."""

    place: Path
    prefix: Path

    def run(self, user: str, *command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command as one of the three, in a home of its own."""
        home = self.place / user
        if not home.exists():
            home.mkdir()
            shutil.chown(home, user)
            (home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n" if user == INSTALLER else "")
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "GIT_SSL"))
        }
        settings = {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **kept,
            **settings,
        }
        groups = "--clear-groups" if user == OUTSIDER else f"--groups={GROUP}"
        words = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={pwd.getpwnam(user).pw_gid}",
            groups,
            "--no-new-privs",
        ]
        return subprocess.run(
            [*words, *map(str, command)],
            env=settings,
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def shell(self, user: str, kind: str, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script in a shell with Lmod and the centre's own modules beside ours."""
        use = f"source {LMOD}; module use {self.place}/modules/Core {self.prefix}/modules/{kind}; {script}"
        return self.run(user, "bash", "--noprofile", "--norc", "-c", use, LMOD_IGNORE_CACHE="yes")

    def deploy(self, release: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """What the installer does."""
        words = [f"{name}={value}" for name, value in settings.items()]
        mirrors = {
            "PAGEWISE_SPACK_URL": f"file://{self.place}/spack.git",
            "PAGEWISE_SPACK_PACKAGES_URL": f"file://{self.place}/spack-packages.git",
        }
        where = (f"PREFIX={self.prefix}", f"RELEASE={release}", "ENV=release-quick")
        make = ("make", "--no-print-directory", "-C", self.place / "project", "deploy")
        return self.run(INSTALLER, *make, *where, *words, **mirrors)


def release_next(project: Path) -> None:
    """Make another release, as docs/release.md says."""
    build = project / "kernels" / "CMakeLists.txt"
    build.write_text(build.read_text().replace(VERSION, NEXT))
    git(project, "commit", "--quiet", "--all", "--message", f"Name version {NEXT}")
    made = dist(project, "--revision", "HEAD")
    (line,) = re.findall(r'^ +"9\.8\.8": "[0-9a-f]{64}",$', made.stdout, re.MULTILINE)
    recipes = project / RECIPES
    recipes.write_text(recipes.read_text().replace("RELEASES = {\n", f"RELEASES = {{\n{line}\n"))
    environment = project / "envs" / "release-quick" / "spack.yaml"
    environment.write_text(environment.read_text().replace(VERSION, NEXT))
    git(project, "commit", "--quiet", "--all", "--message", f"Release {NEXT}")
    git(project, "tag", f"v{NEXT}")


@pytest.fixture(scope="session")
def centre(spack_ready: None, origin: Path) -> Iterator[Centre]:
    """A centre with modules in a hierarchy, the project's clone with two releases, and the first deployed."""
    if os.geteuid() != 0:
        pytest.skip("taking other users' parts needs root")
    # Not below pytest's folders, which are root's alone.
    place = Path(tempfile.mkdtemp(prefix="pagewise-centre-", dir="/var/tmp"))
    try:
        place.chmod(0o755)
        for name in ("spack", "spack-packages"):
            git(place, "clone", "--quiet", "--bare", str((STATE / name).resolve()), f"{name}.git")
        git(place, "clone", "--quiet", f"file://{origin}", "project")
        release_next(place / "project")
        # As in a checkout that is set up.
        shutil.copytree((STATE / "misc-cache").resolve(), place / "project" / ".pagewise" / "misc-cache")
        core, compiler = place / "modules/Core/gcc/12.2.0.lua", place / "modules/gcc/12.2.0/fftw/3.3.10.lua"
        for file, text in (
            (core, f'prepend_path("MODULEPATH", "{place}/modules/gcc/12.2.0")\n'),
            (compiler, ""),
        ):
            file.parent.mkdir(parents=True)
            file.write_text(f'family("compiler")\n{text}' if text else 'setenv("FFTW", "here")\n')
        (place / "apps").mkdir()
        run("chown", "-R", INSTALLER, place / "project", place / "apps")
        one = Centre(place, place / "apps" / "pagewise")
        done = one.deploy(VERSION, GROUP=GROUP)
        assert done.returncode == 0, done.stdout
        yield one
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="session")
def upgraded(centre: Centre) -> Centre:
    """With the next release beside the first."""
    done = centre.deploy(NEXT, GROUP=GROUP, DEFAULT="1")
    assert done.returncode == 0, done.stdout
    return centre


def test_the_release_belongs_to_the_group_and_none_but_the_installer_writes(centre: Centre) -> None:
    assert (centre.prefix.owner(), centre.prefix.group()) == (INSTALLER, GROUP)
    others = run("find", centre.prefix, "-not", "-type", "l", "-perm", "/022").stdout
    closed = run(
        "find", centre.prefix, "-not", "-type", "l", "-not", "-name", ".lock", "-not", "-perm", "-040"
    ).stdout
    foreign = run("find", centre.prefix / "releases" / VERSION, "-not", "-group", GROUP).stdout
    world = run("find", centre.prefix / "releases" / VERSION, "-not", "-type", "l", "-perm", "/007").stdout
    assert (others, closed, foreign, world) == ("", "", "", "")


@pytest.mark.parametrize("kind", ["hierarchy", "flat"])
def test_a_member_loads_modules_beside_those_of_the_centre(centre: Centre, kind: str) -> None:
    module = f"pagewise-micro/{VERSION}/gcc-12.2.0/thp/hardware-regular"
    script = f"""
        module avail 2>&1; echo ===
        module load gcc/12.2.0 fftw pagewise/{VERSION} && module load {module} && echo FFTW $FFTW
        module load gcc/12.2.0; command -v pagewise; man -w pagewise
        man -w ls >/dev/null && echo others
        pw-{KERNEL} --working-set 1MB --repetitions 1 && echo ran
        module unload pagewise {module}; module list 2>&1
        command -v pagewise pw-{KERNEL} || echo gone"""
    done = centre.shell(MEMBER, kind, script)
    avail, loaded = done.stdout.split("===\n")
    assert f"pagewise/{VERSION}" in avail and ("thp" in avail) == (kind == "flat"), avail
    release = centre.prefix / "releases" / VERSION
    for told in ("FFTW here", f"{release}/pagewise\n", f"{release}/.pagewise/share/man", "ran\n", "gone\n"):
        assert told in loaded, done.stdout


def test_a_member_compares_with_results_of_his_own(centre: Centre) -> None:
    # The release of these tests pins what `pagewise run` and Spack need; comparing takes the rest from here.
    (packages,) = (STATE / "venv").resolve().glob("lib/python3*/site-packages")
    rest = centre.place / "python"
    if run("cp", "--archive", "--link", packages, rest).returncode != 0:
        shutil.copytree(packages, rest, dirs_exist_ok=True)
    (own,) = (centre.prefix / "releases" / VERSION / ".pagewise" / "venv").glob("lib/python3*/site-packages")
    (own / "rest.pth").write_text(f"{rest}\n")
    shutil.chown(own / "rest.pth", INSTALLER)
    compare = f"pagewise compare --kernels {KERNEL} --rounds 3"
    done = centre.shell(MEMBER, "hierarchy", f"module load pagewise && {compare}")
    assert "noise floor" in done.stdout.lower(), done.stdout
    (result,) = (centre.place / MEMBER / "results").iterdir()
    commit = git(centre.place / "project", "-c", "safe.directory=*", "rev-parse", f"v{VERSION}").strip()
    assert commit in (result / "manifest.json").read_text(), "the deployed commit is on record"
    assert (result / "report.html").is_file() and result.owner() == MEMBER


def test_an_outsider_sees_nothing(centre: Centre) -> None:
    assert centre.run(OUTSIDER, "ls", centre.prefix).returncode != 0
    program = next((centre.prefix / "releases" / VERSION / ".pagewise/opt/pagewise-micro").glob("*/bin/pw-*"))
    assert "Permission denied" in centre.run(OUTSIDER, "bash", "-c", str(program)).stdout
    done = centre.shell(OUTSIDER, "hierarchy", "module avail 2>&1; module load pagewise || echo none")
    assert "gcc/12.2.0" in done.stdout and "none" in done.stdout, done.stdout


def test_members_can_neither_deploy_nor_change(centre: Centre) -> None:
    release = centre.prefix / "releases" / VERSION
    assert centre.run(MEMBER, "touch", release / "file").returncode != 0
    for script in ("deploy", "undeploy"):
        done = centre.run(MEMBER, release / "setup" / script, centre.prefix, VERSION, ENV="release-quick")
        assert done.returncode == 4 and "may not write" in done.stdout, done.stdout
    assert (release / "pagewise").is_file()


def test_deploying_again_changes_nothing(centre: Centre) -> None:
    opt = centre.prefix / "releases" / VERSION / ".pagewise/opt/pagewise-micro"
    before = [(file, file.stat().st_mtime) for file in sorted(opt.rglob("*"))]
    done = centre.deploy(VERSION)
    assert done.returncode == 0 and "installing" not in done.stdout, done.stdout
    assert before == [(file, file.stat().st_mtime) for file in sorted(opt.rglob("*"))]


def test_bad_requests_are_told(centre: Centre) -> None:
    for told, settings in (
        ("is of version 9.8.8, and not 9.9.9", {"REVISION": "HEAD"}),
        ("there is no revision nowhere", {"REVISION": "nowhere"}),
        ("no environment envs/none", {"ENV": "none"}),
        ("belongs to group users, and not to games", {"GROUP": "games"}),
    ):
        done = centre.deploy("9.9.9" if "REVISION" in settings else VERSION, **settings)
        assert done.returncode == 2 and told in done.stdout and "remedy:" in done.stdout, done.stdout
    for where in (("relative", VERSION), ("/var/tmp/a b", VERSION), ("/var/tmp/x", "../../etc"), ("", "")):
        for script in ("deploy", "undeploy"):
            done = run(ROOT / "setup" / script, *where)
            assert done.returncode == 4 and "remedy:" in done.stdout, done.stdout


def test_an_upgrade_keeps_the_release_before(upgraded: Centre) -> None:
    told = "echo $PAGEWISE_RELEASE"
    script = f"module load pagewise; {told}; module load pagewise/{VERSION}; {told}; pagewise list"
    done = upgraded.shell(MEMBER, "hierarchy", script)
    assert re.search(rf"^{NEXT}$", done.stdout, re.M) and re.search(rf"^{VERSION}$", done.stdout, re.M), (
        done.stdout
    )
    both = f"module load pagewise-micro/{VERSION}/gcc-12.2.0/none/hardware-regular; echo $PAGEWISE_VERSION"
    done = upgraded.shell(
        MEMBER,
        "flat",
        f"{both}; module load pagewise-micro/{NEXT}/gcc-12.2.0/none/hardware-regular; echo $PAGEWISE_VERSION",
    )
    assert [line for line in done.stdout.splitlines() if re.fullmatch(r"[\d.]+", line)] == [VERSION, NEXT], (
        done.stdout
    )


def test_another_instance_builds_upon_the_deployed_one(upgraded: Centre) -> None:
    """Spack's chaining: what the release has installed is neither built nor copied."""
    own = upgraded.place / "project"
    opt = upgraded.prefix / "releases" / NEXT / ".pagewise" / "opt"
    mirrors = {
        "PAGEWISE_SPACK_URL": f"file://{upgraded.place}/spack.git",
        "PAGEWISE_SPACK_PACKAGES_URL": f"file://{upgraded.place}/spack-packages.git",
    }
    done = upgraded.run(
        INSTALLER, "make", "-C", own, "stack", "ENV=release-quick", f"UPSTREAMS={opt}", **mirrors
    )
    assert done.returncode == 0, done.stdout
    assert not list((own / ".pagewise" / "opt").glob("pagewise-micro/*"))
    done = upgraded.run(INSTALLER, own / "pagewise", "list", "--env", "release-quick", "--json")
    assert done.returncode == 0 and "thp" in done.stdout, done.stdout
    modules = [file.read_text() for file in (own / ".pagewise/modules/release-quick/").rglob("*.lua")]
    assert len(modules) == 2 and all(str(opt) in text for text in modules)


def test_one_release_goes_and_the_other_stays(upgraded: Centre) -> None:
    where = (f"PREFIX={upgraded.prefix}", f"RELEASE={NEXT}")
    done = upgraded.run(INSTALLER, "make", "-C", upgraded.place / "project", "undeploy", *where)
    assert done.returncode == 0, done.stdout
    assert NEXT not in run("find", upgraded.prefix, "-name", f"*{NEXT}*").stdout
    module = f"pagewise-micro/{VERSION}/gcc-12.2.0/thp/hardware-regular"
    done = upgraded.shell(MEMBER, "flat", f"module load pagewise {module} && pw-{KERNEL} --version")
    assert VERSION in done.stdout, done.stdout
    done = upgraded.run(INSTALLER, upgraded.place / "project/setup/undeploy", upgraded.prefix, NEXT)
    assert done.returncode == 4 and f"it has: {VERSION}" in done.stdout, done.stdout
