"""A content-addressed cache of built things: a folder per key, complete or absent.

An entry is made in a scratch folder and renamed into place, so a reader never sees half of one and a builder
that is killed leaves only scratch. A lock per key (``flock``: the kernel frees it when its holder dies) keeps
two processes from building the same thing twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cuco.errors import UsageError

UNUSED_DAYS = 14
"""Entries that nobody used for this long are removed when something new is built."""
_SCRATCH_SECONDS = 24 * 3600


def default_root() -> Path:
    """``$CUCO_CACHE``, else ``$XDG_CACHE_HOME/cuco``, else ``~/.cache/cuco``."""
    if os.environ.get("CUCO_CACHE"):
        return Path(os.environ["CUCO_CACHE"]).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuco"


def digest(*parts: str | bytes) -> str:
    """A key: the hash of the parts, with their borders (``("ab", "c")`` and ``("a", "bc")`` differ)."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:40]


class Cache:
    """The cache below ``root``. Errors of the file system are one line naming the folder (UsageError)."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_root()

    def get(self, kind: str, key: str) -> Path | None:
        """The finished entry, or None. Marks it as used."""
        path = self._path(kind, key)
        try:
            os.utime(path)
        except FileNotFoundError:
            return None
        except OSError:
            # A cache that may be read but not written still serves.
            return path if path.is_dir() else None
        return path

    def obtain(self, kind: str, key: str, make: Callable[[Path], None]) -> Path:
        """The entry, made by ``make(folder)`` if absent; whatever ``make`` raises passes through, nothing is
        kept.
        """
        found = self.get(kind, key)
        if found is not None:
            return found
        with self._errors(), self._lock(kind, key):
            found = self.get(kind, key)
            if found is not None:
                return found
            self.tidy()
            return self._make(kind, key, make)

    def _make(self, kind: str, key: str, make: Callable[[Path], None]) -> Path:
        scratch_root = self.root / "scratch"
        scratch_root.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=scratch_root))
        try:
            make(scratch)
            target = self._path(kind, key)
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch.chmod(0o755)
            os.rename(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return target

    def tidy(self) -> None:
        """Removes scratch of dead builders and entries unused for ``UNUSED_DAYS``."""
        now = time.time()
        old = [(path, _SCRATCH_SECONDS) for path in self.root.glob("scratch/*")]
        old += [(path, UNUSED_DAYS * 86400) for path in self.root.glob("entries/*/*/*")]
        for path, limit in old:
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > limit:
                    shutil.rmtree(path, ignore_errors=True)

    def _path(self, kind: str, key: str) -> Path:
        return self.root / "entries" / kind / key[:2] / key

    @contextlib.contextmanager
    def _lock(self, kind: str, key: str) -> Iterator[None]:
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        # One lock file per two hex digits: a bounded number of files, and unrelated builds seldom meet.
        handle = os.open(folder / f"{kind}-{key[:2]}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"the cache folder {self.root} cannot be used: {error.strerror or error}",
                fix="free space or set CUCO_CACHE to a writable folder",
            ) from error
