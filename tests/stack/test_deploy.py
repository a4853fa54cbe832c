"""A centre's deployment: three users, two releases, one of them removed; a Spack instance that reuses it."""

from __future__ import annotations

import errno
import os
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import (
    EXCLUDED,
    KERNEL,
    PYTHON_PACKAGES,
    ROOT,
    STATE,
    VERSION,
    git,
    pin_only,
    pins,
    printed,
    release,
    run,
)

pytestmark = pytest.mark.systems

#: Accounts of every Debian system, and a group that they are members of while a command runs.
INSTALLER, MEMBER, OUTSIDER = "daemon", "games", "nobody"
GROUP = "users"
NEXT, BROKEN = "9.8.8", "9.8.9"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
LMOD = "/usr/share/lmod/lmod/init/bash"


@dataclass(frozen=True)
class Centre:
    """A centre in a folder, with methods that run commands there."""

    place: Path
    prefix: Path
    origin: Path

    @property
    def values(self) -> dict[str, str]:
        """What a reader of the page puts for its examples."""
        return {"/apps": f"{self.place}/apps", "GROUP=hpc": f"GROUP={GROUP}", "<new version>": NEXT}

    def run(self, user: str, *command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a user, in the user's home."""
        home = self.place / user
        if not home.exists():
            home.mkdir()
            shutil.chown(home, user)
            deploys = user in (INSTALLER, "root")
            (home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n" if deploys else "")
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "GIT_SSL"))
        }
        settings = {"HOME": str(home), "PATH": SYSTEM_PATH, "LANG": "C.UTF-8", **kept, **settings}
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
        """Run a script in a shell with Lmod, the centre's modules and ours."""
        use = f"source {LMOD}; module use {self.place}/modules/Core {self.prefix}/modules/{kind}; {script}"
        return self.run(user, "bash", "--noprofile", "--norc", "-c", use, LMOD_IGNORE_CACHE="yes")

    def deploy(
        self, release: str, user: str = INSTALLER, path: str = SYSTEM_PATH, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """Deploy a release as a user."""
        words = {"PREFIX": self.prefix, "RELEASE": release, **settings}
        line = shlex.join(["make", "deploy", *(f"{name}={value}" for name, value in words.items())])
        return self.install(line, user, path)

    def install(
        self, script: str, user: str = INSTALLER, path: str = SYSTEM_PATH
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in the project's clone as a user, with mirrors of Spack."""
        mirrors = {
            "PAGEWISE_SPACK_URL": f"file://{self.place}/spack.git",
            "PAGEWISE_SPACK_PACKAGES_URL": f"file://{self.place}/spack-packages.git",
            "PATH": path,
        }
        return self.run(user, "bash", "-ec", f"cd {self.place}/project\n{script}", **mirrors)

    def has_module(self, release: str) -> bool:
        return (self.prefix / "modules" / "hierarchy" / "pagewise" / f"{release}.lua").exists()


@pytest.fixture(scope="session")
def centre(spack_ready: None, origin: Path) -> Iterator[Centre]:
    """A centre with a module hierarchy and a clone with two releases, of which the first is deployed."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to run as other users")
    # Not below pytest's folders, which only root may enter.
    place = Path(tempfile.mkdtemp(prefix="pagewise-centre-", dir="/var/tmp"))
    try:
        place.chmod(0o755)
        for name in ("spack", "spack-packages"):
            git(place, "clone", "--quiet", "--bare", str((STATE / name).resolve()), f"{name}.git")
        git(place, "clone", "--quiet", f"file://{origin}", "project")
        pin_only(place / "project", pins().keys() - EXCLUDED)
        git(place / "project", "commit", "--quiet", "--all", "--message", "Pin the packages for comparing")
        git(place / "project", "tag", "--force", f"v{VERSION}")
        release(place / "project", NEXT)
        # As in a checkout after the set-up.
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
        centre = Centre(place, place / "apps" / "pagewise", origin)
        commands, layout = printed(origin, "centre", "Deploying a release", centre.values)
        # The first line is for test_another_instance_builds_upon_the_deployed_one.
        done = centre.install(commands.removeprefix("make setup\n"))
        assert done.returncode == 0, done.stdout
        assert all(Path(folder).is_dir() for folder in re.findall(r"^(/\S+)/ ", layout, re.MULTILINE))
        yield centre
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="session")
def upgraded(centre: Centre) -> Centre:
    """The centre with the next release, deployed by root, whose first Python on PATH nobody else can run."""
    python = private_python(centre, "root")
    (lines,) = printed(centre.origin, "centre", "Upgrade and removal", centre.values)
    upgrade = lines.partition("make undeploy")[0]
    done = centre.install(upgrade, "root", f"{python.parent}:{SYSTEM_PATH}")
    assert done.returncode == 0, done.stdout
    return centre


def private_python(centre: Centre, user: str) -> Path:
    """A Python in a folder that only this user may enter."""
    folder = centre.place / f"private-{user}"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        (folder / "python3").symlink_to(str(shutil.which("python3", path=SYSTEM_PATH)))
        shutil.chown(folder, user)
    return folder / "python3"


def test_the_release_belongs_to_the_group_and_only_the_installer_may_write(centre: Centre) -> None:
    assert (centre.prefix.owner(), centre.prefix.group()) == (INSTALLER, GROUP)
    others = run("find", centre.prefix, "-not", "-type", "l", "-perm", "/022").stdout
    closed = run(
        "find", centre.prefix, "-not", "-type", "l", "-not", "-name", ".lock", "-not", "-perm", "-040"
    ).stdout
    foreign = run("find", centre.prefix / "releases" / VERSION, "-not", "-group", GROUP).stdout
    world = run("find", centre.prefix / "releases" / VERSION, "-not", "-type", "l", "-perm", "/007").stdout
    assert (others, closed, foreign, world) == ("", "", "", "")


@pytest.mark.parametrize("kind", ["hierarchy", "flat"])
def test_a_member_loads_modules_together_with_the_centres(centre: Centre, kind: str) -> None:
    module = f"pagewise-micro/{VERSION}/gcc-12.2.0/thp/hardware-regular"
    script = f"""
        module avail 2>&1; echo ===
        module load gcc/12.2.0 fftw pagewise/{VERSION} && module load {module} && echo FFTW $FFTW
        module load gcc/12.2.0; command -v pagewise
        complete -p pagewise
        module load pagewise-pages/thp && echo "$PAGEWISE_EXEC_POLICY" policy
        pagewise-exec --quiet none -- echo launched; pagewise exec --quiet none -- echo started
        pw-{KERNEL} --working-set 1MB --repetitions 1 && echo ran
        module unload pagewise {module}; module list 2>&1
        command -v pagewise pagewise-exec pw-{KERNEL} || complete -p pagewise || echo gone"""
    done = centre.shell(MEMBER, kind, script)
    avail, loaded = done.stdout.split("===\n")
    assert f"pagewise/{VERSION}" in avail and ("thp" in avail) == (kind == "flat"), avail
    release = centre.prefix / "releases" / VERSION
    shown = ("thp policy", "launched", "started", "FFTW here", "ran", "gone", f"{release}/pagewise")
    assert set(shown) <= set(loaded.splitlines()), done.stdout
    assert "complete -o nosort -F" in loaded, done.stdout


def test_a_member_compares_with_their_own_results(centre: Centre) -> None:
    (commands,) = printed(centre.origin, "centre", "Modules for users", centre.values)
    done = centre.run(MEMBER, "bash", "-c", f"source {LMOD}; {commands}")
    assert "thp" in done.stdout, done.stdout
    (result,) = (centre.place / MEMBER / "results").iterdir()
    commit = git(centre.place / "project", "rev-parse", f"v{VERSION}").strip()
    assert commit in (result / "manifest.json").read_text(), "the deployed commit is on record"
    assert (result / "report.html").is_file() and result.owner() == MEMBER


def test_an_outsider_sees_nothing(centre: Centre) -> None:
    assert centre.run(OUTSIDER, "ls", centre.prefix).returncode != 0
    program = next((centre.prefix / "releases" / VERSION / ".pagewise/opt/pagewise-micro").glob("*/bin/pw-*"))
    assert os.strerror(errno.EACCES) in centre.run(OUTSIDER, "bash", "-c", str(program)).stdout
    done = centre.shell(OUTSIDER, "hierarchy", "module avail 2>&1; module load pagewise || echo none")
    assert "gcc/12.2.0" in done.stdout and "none" in done.stdout, done.stdout


def test_members_can_neither_deploy_nor_change(centre: Centre) -> None:
    release = centre.prefix / "releases" / VERSION
    assert centre.run(MEMBER, "touch", release / "file").returncode != 0
    for script in ("deploy", "undeploy"):
        done = centre.run(MEMBER, release / "setup" / script, centre.prefix, VERSION, ENV="release-quick")
        assert done.returncode == 4 and str(centre.prefix) in done.stdout, done.stdout
    assert (release / "pagewise").is_file()


def test_deploying_again_changes_nothing(centre: Centre) -> None:
    opt = centre.prefix / "releases" / VERSION / ".pagewise/opt/pagewise-micro"
    before = [(file, file.stat().st_mtime) for file in sorted(opt.rglob("*"))]
    done = centre.deploy(VERSION)
    assert done.returncode == 0, done.stdout
    assert before == [(file, file.stat().st_mtime) for file in sorted(opt.rglob("*"))]


def test_wrong_variables_are_refused(centre: Centre) -> None:
    for cause, settings in (
        (NEXT, {"REVISION": "HEAD"}),
        ("nowhere", {"REVISION": "nowhere"}),
        ("envs/none", {"ENV": "none"}),
        ("games", {"GROUP": "games"}),
    ):
        done = centre.deploy("9.9.9" if "REVISION" in settings else VERSION, **settings)
        assert done.returncode == 2 and cause in done.stdout, done.stdout
    for where in (("relative", VERSION), ("/var/tmp/a b", VERSION), ("/var/tmp/x", "../../etc"), ("", "")):
        for script in ("deploy", "undeploy"):
            done = run(ROOT / "setup" / script, *where)
            assert done.returncode == 4 and ("PREFIX" in done.stdout or "RELEASE" in done.stdout), done.stdout


@pytest.mark.parametrize("user", [INSTALLER, "root"])
def test_a_python_that_users_cannot_run_is_refused_before_anything_is_built(
    centre: Centre, user: str
) -> None:
    python = private_python(centre, user)
    done = centre.deploy(NEXT, user, PAGEWISE_PYTHON=str(python))
    assert done.returncode == 2 and str(python) in done.stdout, done.stdout
    closed = python.parent / "apps"
    done = centre.deploy(NEXT, user, PREFIX=str(closed))
    assert done.returncode == 2 and not list(closed.glob("releases/*")), done.stdout
    assert [folder.name for folder in (centre.prefix / "releases").glob("[0-9]*")] == [VERSION]


@pytest.mark.release
def test_a_release_deployed_by_root_is_usable_by_all_members(upgraded: Centre) -> None:
    release = upgraded.prefix / "releases" / NEXT
    private = private_python(upgraded, "root").parent
    interpreter = (release / ".pagewise" / "venv" / "bin" / "python3").readlink()
    assert private not in interpreter.parents
    done = upgraded.run(MEMBER, release / "pagewise", "list", "--env", "release")
    assert done.returncode == 0 and KERNEL in done.stdout, done.stdout


def break_release(centre: Centre, fault: str, user: str) -> str:
    """A commit that reuses the deployed stack and has a fault that only users meet; returns its hash."""
    project, state = centre.place / "project", centre.prefix / "releases" / VERSION / ".pagewise"
    git(project, "checkout", "--quiet", "-B", f"{fault}-{user}".replace(" ", "-"), f"v{VERSION}")
    release(project, BROKEN)
    modules = state / "modules"
    if fault == "closed":
        modules = private_python(centre, user).with_name("modules")
        shutil.copytree(state / "modules", modules, symlinks=True, dirs_exist_ok=True)
        shutil.chown(modules, user)
    elif fault == "failing":
        with (project / "runners/pagewise/__init__.py").open("a") as runner:
            runner.write("raise KeyError\n")
    # A report recommends the launcher, which `make stack` installs if there is a C compiler.
    kept = ("venv", "share") if fault == "without launcher" else ("venv", "share", "exec")
    parts = [*(state / name for name in kept), modules]
    links = " && ".join(f"ln -sfn {path} .pagewise/{path.name}" for path in parts)
    (project / "Makefile").write_text(f"stack:\n\tmkdir -p .pagewise && {links}\n")
    git(project, "commit", "--quiet", "--all", "--message", f"Break: {fault}")
    commit = git(project, "rev-parse", "HEAD").strip()
    git(project, "checkout", "--quiet", "-")
    run("chown", "-R", INSTALLER, project)
    return commit


@pytest.mark.parametrize(
    ("fault", "user"),
    [(fault, user) for fault in ("failing", "closed", "without launcher") for user in (INSTALLER, "root")],
)
def test_a_release_that_users_cannot_use_gets_no_module(centre: Centre, fault: str, user: str) -> None:
    commit = break_release(centre, fault, user)
    done = centre.deploy(BROKEN, user, REVISION=commit)
    try:
        assert done.returncode == 2, done.stdout
        assert (centre.prefix / "releases" / BROKEN / "pagewise").exists(), done.stdout
        assert not centre.has_module(BROKEN) and centre.has_module(VERSION)
        assert not list((centre.prefix / "modules" / "flat").glob(f"*/{BROKEN}"))
    finally:
        run(ROOT / "setup" / "undeploy", centre.prefix, BROKEN)


@pytest.mark.release
def test_an_upgrade_keeps_the_previous_release(upgraded: Centre) -> None:
    show = "echo $PAGEWISE_RELEASE"
    script = f"module load pagewise; {show}; module load pagewise/{VERSION}; {show}; pagewise list"
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


@pytest.mark.release
def test_another_instance_builds_upon_the_deployed_one(upgraded: Centre) -> None:
    """With the release as Spack upstream: its packages are neither built nor copied."""
    own = upgraded.place / "project"
    # This instance compares nothing.
    pin_only(own, PYTHON_PACKAGES)
    opt = upgraded.prefix / "releases" / NEXT / ".pagewise" / "opt"
    values = {**upgraded.values, f"releases/{VERSION}": f"releases/{NEXT}"}
    (stack,) = printed(upgraded.origin, "centre", "Reusing installed packages", values)
    done = upgraded.install(f"make setup\n{stack}")
    assert done.returncode == 0, done.stdout
    assert not list((own / ".pagewise" / "opt").glob("pagewise-micro/*"))
    done = upgraded.run(INSTALLER, own / "pagewise", "list", "--env", "release", "--json")
    assert done.returncode == 0 and "thp" in done.stdout, done.stdout
    modules = [file.read_text() for file in (own / ".pagewise/modules/release/").rglob("*.lua")]
    assert len(modules) == 2 and all(str(opt) in text for text in modules)


@pytest.mark.release
def test_undeploy_removes_one_release_and_keeps_the_other(upgraded: Centre) -> None:
    (lines,) = printed(upgraded.origin, "centre", "Upgrade and removal", upgraded.values)
    done = upgraded.install("".join(lines.partition("make undeploy")[1:]), "root")
    assert done.returncode == 0, done.stdout
    assert VERSION not in run("find", upgraded.prefix, "-name", f"*{VERSION}*").stdout
    module = f"pagewise-micro/{NEXT}/gcc-12.2.0/thp/hardware-regular"
    done = upgraded.shell(MEMBER, "flat", f"module load pagewise {module} && pw-{KERNEL} --version")
    assert NEXT in done.stdout, done.stdout
    done = upgraded.run(INSTALLER, upgraded.place / "project/setup/undeploy", upgraded.prefix, VERSION)
    assert done.returncode == 4 and NEXT in done.stdout, done.stdout
