"""Where a result comes from: whether this user began it here, by a key that no result holds."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

from pagewise.core.manifest import Manifest
from pagewise.core.private import is_private, make_private, user_folder
from pagewise.core.structure import unstructured

# What decides which code `rerun` and `--resume` execute or load.
_SEALED = ("id", "command", "started_in", "modules")
_KEY_BYTES = 32


def seal(manifest: Manifest) -> str | None:
    """The seal of a result that this user begins here; None where no private folder keeps the key."""
    key = _key(make=True)
    return None if key is None else _code(key, manifest)


def is_own(manifest: Manifest) -> bool:
    """Whether this user began the result, and what it would execute is as it was."""
    key = _key(make=False)
    if manifest.seal is None or key is None:
        return False
    return hmac.compare_digest(manifest.seal, _code(key, manifest))


def _code(key: bytes, manifest: Manifest) -> str:
    parts = json.dumps([unstructured(getattr(manifest, name)) for name in _SEALED], sort_keys=True)
    return hmac.digest(key, parts.encode(), "sha256").hex()


def _key(*, make: bool) -> bytes | None:
    """This user's key; None without one, or where others could know it or put another in its place."""
    folder = user_folder("XDG_STATE_HOME", ".local/state")
    if folder is None:
        return None
    file = folder / "pagewise" / "key"
    if make and not file.exists() and make_private(file.parent):
        # A file appears as a whole: of two that make it, one is the first.
        aside = file.with_name(f".key.{secrets.token_hex(8)}")
        with suppress(OSError):
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(secrets.token_bytes(_KEY_BYTES))
            with suppress(FileExistsError):
                os.link(aside, file)
        aside.unlink(missing_ok=True)
    return _read(file)


def _read(file: Path) -> bytes | None:
    try:
        state = file.lstat()
        if state.st_uid != os.geteuid() or state.st_mode & 0o077 or not is_private(file):
            return None
        key = file.read_bytes()
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None
