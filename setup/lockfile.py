"""Run by `spack python`: lock an environment for a target, with a manifest of the lock's requirements, or
check that a lock fits this machine and checkout.

    lockfile.py write ROOT ENVIRONMENT ENVIRONMENT_FOLDER TARGET FOLDER SITE_FOLDER
    lockfile.py check ROOT ENVIRONMENT ENVIRONMENT_FOLDER FOLDER

FOLDER holds spack.lock, manifest.json (schema pagewise.lock/1) and sources.tsv, for a mirror. TARGET is
Spack's name of a processor, or `host`. Exit code 4: the environment cannot be locked, or the lock does not
fit; the reasons are on standard error.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import spack.config
import spack.environment
import spack.platforms
import spack.spec
import spack.util.libc
import spack.util.spack_yaml as syaml
import spack.vendor.archspec.cpu as archspec

SCHEMA = "pagewise.lock/1"
ANOTHER_LOCK = "create a lock with make lock on this machine and checkout, or remove the differences above"


def fail(message: str, remedy: str) -> NoReturn:
    """Print an error with its remedy, and exit with code 4."""
    print(f"lock: error: {message}\n  remedy: {remedy}", file=sys.stderr)
    sys.exit(4)


def sha256(file: Path) -> str:
    """The digest of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def git(folder: Path, *arguments: str) -> str | None:
    """The output of git in a folder; None without git or repository."""
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def recipes(root: Path) -> dict[str, str]:
    """The digest of each recipe of this project, and of each file that recipes read, by its path."""
    kinds = ("repos/spack_repo/**/*.py", "repos/spack_repo/**/repo.yaml")
    data = ("kernels/cmake/compilers/*.json", "kernels/pages/policies.json")
    files = sorted(file for pattern in (*kinds, *data) for file in root.glob(pattern))
    return {str(file.relative_to(root)): sha256(file) for file in files}


def setup_facts(root: Path) -> dict[str, Any]:
    """The facts that the set-up detected."""
    facts: dict[str, Any] = json.loads((root / ".pagewise" / "setup.json").read_text(encoding="utf-8"))
    return facts


def system() -> dict[str, str]:
    """Operating system and C library, by Spack's names, and the system's own name."""
    host = spack.platforms.host()
    libc = spack.util.libc.libc_from_current_python_process()
    file = Path("/etc/os-release")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    name = next((line.split("=", 1)[1].strip('"') for line in lines if line.startswith("PRETTY_NAME=")), "")
    return {
        "platform": str(host),
        "os": host.default_os,
        "name": name,
        "libc": f"{libc.name}@{libc.version}" if libc else "unknown",
    }


def externals(lock: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The packages of a lock that the machine provides."""
    packages = {}
    for node in lock["concrete_specs"].values():
        if external := node.get("external"):
            compilers = (external.get("extra_attributes") or {}).get("compilers", {})
            key = f"{node['name']}@{node['version']}"
            facts = {"compilers": dict(compilers)} if compilers else {}
            packages[key] = {"prefix": external["path"], **facts}
    return dict(sorted(packages.items()))


def targets(lock: dict[str, Any]) -> list[str]:
    """The processors that the lock builds for."""
    built = (node["arch"]["target"] for node in lock["concrete_specs"].values() if not node.get("external"))
    return sorted({target if isinstance(target, str) else target["name"] for target in built})


def proofs(root: Path, provided: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The compilers among the packages that the machine provides, with the set-up's verification."""
    known = {(entry["c"], entry["version"]): entry["proof"] for entry in setup_facts(root)["compilers"]}
    compilers = []
    for key, package in provided.items():
        if "compilers" in package:
            name, version = key.split("@")
            proof = known.get((package["compilers"].get("c"), version))
            compilers.append({"name": name, "version": version, **package, "proof": proof})
    return compilers


def absolute(folder: Path, included: str | dict[str, Any]) -> str | dict[str, Any]:
    """An entry of include: or repos:, relative to the environment's folder, with an absolute path."""
    if isinstance(included, dict):
        return {**included, "path": absolute(folder, included["path"])}
    return included if included.startswith("$") else os.path.normpath(folder / included)


def of_site(root: Path, site: Path, workspace: Path) -> dict[str, str]:
    """The folders of this site, by the folders of the environment's site that they replace."""
    only = workspace / "system-compiler"
    if not only.exists():
        script = root / "setup" / "system_compiler.py"
        subprocess.run([sys.executable, str(script), str(site), str(only)], check=True)
    state = root / ".pagewise"
    return {str(state / "sites"): str(site), str(state / "system-compiler"): str(only)}


def concretize(root: Path, source: Path, target: str, workspace: Path, site: Path) -> Path:
    """The lockfile of an environment for a target and site, solved in a separate folder below `workspace`.

    If another environment builds its compiler, that is solved first.
    """
    content = syaml.load(source / "spack.yaml")["spack"]
    replaced = of_site(root, site, workspace)
    entries = [absolute(source, entry) for entry in content.get("include", [])]
    content["include"] = [
        replaced.get(str(Path(entry).parent), entry) if isinstance(entry, str) else entry for entry in entries
    ]
    for section in content.keys() & {"repos", "repos:"}:
        content[section] = {name: absolute(source, path) for name, path in content[section].items()}
    if isinstance(reuse := content.get("concretizer", {}).get("reuse"), dict):
        for origin in reuse["from"]:
            if origin["type"] == "environment":
                origin["path"] = str(concretize(root, root / origin["path"], target, workspace, site).parent)
    settings = ["-c", "concretizer:targets:host_compatible:false"]
    if target != "host":
        settings += ["-c", f"packages:all:require:target={target}"]
    folder = workspace / source.name
    folder.mkdir()
    (folder / "spack.yaml").write_text(json.dumps({"spack": content}), encoding="utf-8")
    spack = [str(root / ".pagewise/spack/bin/spack"), *settings, "--env-dir", str(folder)]
    if subprocess.run([*spack, "concretize", "--force", "--quiet"], check=False).returncode:
        remedy = "fix the error above"
        if target != "host" and archspec.TARGETS[target].family != archspec.host().family:
            remedy += ", or set PAGEWISE_SITE to a site with compilers for this processor"
        fail(f"'{source.name}' cannot be concretized for {target}", remedy)
    return folder / "spack.lock"


def sources(root: Path, environment: str, folder: Path, solved: Path) -> str:
    """The list of sources that a mirror needs to build a solved environment, and how to create the mirror."""
    spack = [str(root / ".pagewise/spack/bin/spack"), "--env-dir", str(solved)]
    command = [*spack, "python", str(root / "setup" / "sources.py")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        fail(f"the sources of '{environment}' cannot be listed", "fix the error above")
    return (
        f"# The sources of the lock of {environment}. To mirror them, with a network, in a checkout:\n"
        f"#   LOCK={folder} setup/solve {environment}\n"
        "#   . setup/activate.sh\n"
        f"#   spack --env-dir envs/{environment} mirror create --directory <mirror> --all\n"
        "# package\tversion\tkind\tURL\tsha256 (git: commit)\n"
    ) + done.stdout


def write(root: Path, environment: str, source: Path, target: str, *, folder: Path, site: Path) -> None:
    """Concretize the environment in a temporary folder, and write lockfile and manifest."""
    with spack.environment.Environment(str(source)):
        builds_checkout = bool(spack.config.get("develop"))
    if builds_checkout:
        released = [file.parent.name for file in sorted(root.glob("envs/release*/spack.yaml"))]
        fail(
            f"'{environment}' builds from this checkout (develop:), which a lock cannot describe",
            f"lock an environment of a released version: {' '.join(f'ENV={name}' for name in released)}",
        )
    if target != "host" and target not in archspec.TARGETS:
        fail(f"unknown target '{target}'", "use one that spack arch --known-targets lists")
    with tempfile.TemporaryDirectory(prefix="lock-", dir=root / ".pagewise") as workspace:
        lockfile = concretize(root, source, target, Path(workspace), site)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(lockfile, folder / "spack.lock")
        listing = sources(root, environment, folder, lockfile.parent)
        (folder / "sources.tsv").write_text(listing, encoding="utf-8")
    lock = json.loads((folder / "spack.lock").read_text(encoding="utf-8"))
    provided = externals(lock)
    facts = setup_facts(root)["spack"]
    manifest = {
        "schema": SCHEMA,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "environment": environment,
        "targets": targets(lock),
        "system": system(),
        "spack": {name: facts[name] for name in ("version", "tree", "packages_commit")},
        "project": {
            "commit": git(root, "rev-parse", "HEAD"),
            "changed": bool(git(root, "status", "--porcelain", "--untracked-files=no")),
        },
        "compilers": proofs(root, provided),
        "externals": {key: package["prefix"] for key, package in provided.items()},
        "files": {"spack.yaml": sha256(source / "spack.yaml"), **recipes(root)},
        "lockfile": {"sha256": sha256(folder / "spack.lock"), "roots": len(lock["roots"])},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    built_for = " ".join(targets(lock))
    print(f"lock: {environment} for {built_for}: {len(lock['roots'])} configurations, in {folder}")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and lock of a folder, if they are complete and belong together."""
    contents = {}
    for name in ("manifest.json", "spack.lock"):
        file = folder / name
        try:
            contents[name] = json.loads(file.read_text(encoding="utf-8"))
        except OSError as fault:
            fail(
                f"{folder} contains no lock: {file}: {fault.strerror}",
                "name a folder that make lock wrote",
            )
        except ValueError as fault:
            fail(f"{file} is damaged: {fault}", "copy the folder again from its origin")
    manifest, lock = contents["manifest.json"], contents["spack.lock"]
    if manifest.get("schema") != SCHEMA:
        schema = manifest.get("schema")
        fail(
            f"{folder}/manifest.json has schema {schema}, not {SCHEMA}",
            "create the lock again with make lock",
        )
    if sha256(folder / "spack.lock") != manifest["lockfile"]["sha256"]:
        fail(
            f"{folder}/spack.lock does not match the digest in manifest.json",
            "copy the folder again from its origin",
        )
    return manifest, lock


def checkout_differences(root: Path, source: Path, manifest: dict[str, Any]) -> Iterator[str]:
    """The differences of Spack, recipes and environment from those of the lock."""
    here = setup_facts(root)["spack"]
    labels = {"version": "Spack", "tree": "Spack's tree", "packages_commit": "Spack's packages"}
    for name, label in labels.items():
        if manifest["spack"][name] != here.get(name):
            yield f"{label}: the lock has {manifest['spack'][name]}, this checkout {here.get(name)}"
    files = {"spack.yaml": sha256(source / "spack.yaml"), **recipes(root)}
    for name in sorted(manifest["files"].keys() | files.keys()):
        if name not in files:
            yield f"{name}: in the lock, not in this checkout"
        elif name not in manifest["files"]:
            yield f"{name}: in this checkout, not in the lock"
        elif manifest["files"][name] != files[name]:
            yield f"{name}: differs from the lock's file (commit {manifest['project']['commit']})"


def machine_differences(manifest: dict[str, Any], lock: dict[str, Any]) -> Iterator[str]:
    """The differences of this machine from that of the lock."""
    here = system()
    for name, label in (("platform", "platform"), ("os", "operating system"), ("libc", "C library")):
        if manifest["system"][name] != here[name]:
            yield f"{label}: the lock has {manifest['system'][name]}, this machine {here[name]}"
    host = archspec.host()
    for name in targets(lock):
        target = archspec.TARGETS.get(name)
        if target is None or not target <= host:
            related = target is not None and target.family == host.family
            missing = " ".join(sorted(target.features - host.features)) if related else ""
            without = f" without {missing}" if missing else ""
            yield f"processor: the lock is for {name}, this machine has {host.name}{without}"
    site = spack.config.get("packages")
    for key, wanted in externals(lock).items():
        name, version = key.split("@")
        if key == manifest["system"]["libc"]:
            continue
        provided = {}
        for entry in site.get(name, {}).get("externals", []):
            compilers = (entry.get("extra_attributes") or {}).get("compilers", {})
            facts = {"prefix": entry["prefix"], **({"compilers": dict(compilers)} if compilers else {})}
            provided[str(spack.spec.Spec(entry["spec"]).version)] = facts
        if version not in provided:
            yield f"{name}: the lock has {version}, this machine {' '.join(provided) or 'none'}"
        elif provided[version] != wanted:
            other = describe(provided[version])
            yield f"{name} {version}: the lock has {describe(wanted)}, this machine {other}"


def describe(package: dict[str, Any]) -> str:
    """A package that a machine provides, as text."""
    return ", ".join([f"prefix {package['prefix']}", *package.get("compilers", {}).values()])


def check(root: Path, environment: str, source: Path, folder: Path) -> None:
    """Fail with all differences unless the lock fits."""
    manifest, lock = read(folder)
    if manifest["environment"] != environment:
        fail(
            f"the lock in {folder} is for environment {manifest['environment']}, not {environment}",
            f"make stack ENV={manifest['environment']}",
        )
    differences = [*checkout_differences(root, source, manifest), *machine_differences(manifest, lock)]
    if differences:
        fail("\n  ".join([f"the lock in {folder} does not fit:", *differences]), ANOTHER_LOCK)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        output, site = map(Path, sys.argv[6:8])
        write(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5], folder=output, site=site)
    else:
        check(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), Path(sys.argv[5]))
