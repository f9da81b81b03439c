"""The cache: entries are whole or absent, and keys see every file that could matter."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from cuco.errors import UsageError
from cuco.testbed.cache import Cache, digest
from cuco.testbed.includes import closure


def test_a_failed_maker_leaves_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fails(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError):
        cache.obtain("thing", "abcd", fails)
    assert cache.get("thing", "abcd") is None
    assert list(tmp_path.glob("scratch/*")) == []


def test_made_once(tmp_path: Path) -> None:
    cache, made = Cache(tmp_path), []
    for _ in range(3):
        entry = cache.obtain("thing", "abcd", lambda folder: made.append(folder))
    assert len(made) == 1 and entry.is_dir()


def test_borders_of_parts_count() -> None:
    assert digest("ab", "c") != digest("a", "bc")


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UsageError, match=f"{blocked}.*CUCO_CACHE"):
        Cache(blocked / "cache").obtain("thing", "abcd", lambda folder: None)


def test_unused_entries_go_and_used_ones_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    old = cache.obtain("thing", "aa", lambda folder: None)
    used = cache.obtain("thing", "bb", lambda folder: None)
    long_ago = time.time() - 40 * 86400
    for path in (old, used):
        os.utime(path, (long_ago, long_ago))
    assert cache.get("thing", "bb") == used
    cache.obtain("thing", "cc", lambda folder: None)
    assert used.is_dir() and not old.exists()


def test_closure_follows_headers_and_sees_absent_ones(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.write_text(
        '#include "one.h"\n#if 0\n#  include <two.h>\n#endif\n#if __has_include("three.h")\n#endif\n'
    )
    (tmp_path / "one.h").write_text('#include "deep.h"')

    def key() -> str:
        return closure(source, source.read_bytes(), [tmp_path / "inc"]).key

    seen = {key()}
    (tmp_path / "deep.h").write_text("int x;")
    seen.add(key())
    (tmp_path / "deep.h").write_text("int y;")
    seen.add(key())
    (tmp_path / "three.h").write_text("")
    seen.add(key())
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "two.h").write_text("int z;")
    seen.add(key())
    assert len(seen) == 5
    (tmp_path / "unrelated.h").write_text("int q;")
    assert key() in seen


def test_closure_does_not_depend_on_the_place(tmp_path: Path) -> None:
    keys = set()
    for name in ("x", "y"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "h.h").write_text("int h;")
        (folder / "a.cu").write_text('#include "h.h"\n#include "gone.h"\n')
        keys.add(closure(folder / "a.cu", (folder / "a.cu").read_bytes(), []).key)
    assert len(keys) == 1


def test_computed_includes_are_said(tmp_path: Path) -> None:
    assert closure(tmp_path / "a.cu", b"#define H <x.h>\n#include H\n", []).computed
    assert not closure(tmp_path / "a.cu", b'#include "x.h"\n// #include_X H\n', []).computed
