"""Evolve blocks keep frozen text byte for byte; patches stay inside blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuco.errors import UsageError
from cuco.source import evolve
from cuco.source.patch import Patch, PatchError, apply_patches, parse_patches

SOURCE = """#include <nccl.h>
const char *text = "// EVOLVE-BLOCK-START";
const char *raw = R"x(
// EVOLVE-BLOCK-START
)x";
int separated = 1'000'000;
int launch() {
  // EVOLVE-BLOCK-START exchange
  int first = 1;
  int second = 2;
  // EVOLVE-BLOCK-END
  int between = 0;
  /* EVOLVE-BLOCK-START */
  call(first,   second);
  /* EVOLVE-BLOCK-END */
  return between;
}
"""


def test_spans_cover_the_text_in_order():
    document = evolve.parse(SOURCE)
    assert [span.kind for span in document.spans] == ["frozen", "mutable", "frozen", "mutable", "frozen"]
    assert "".join(span.text for span in document.spans) == SOURCE
    assert [(span.name, span.line) for span in document.blocks] == [("exchange", 9), ("block-2", 14)]
    assert document.block("exchange").text == "  int first = 1;\n  int second = 2;\n"
    for span in document.spans:
        assert SOURCE[span.start : span.end] == span.text


def test_replace_changes_its_block_only():
    document = evolve.parse(SOURCE)
    changed = document.replace("exchange", "  int first = 7, second = 8;")
    assert changed.frozen == document.frozen
    assert changed.block("exchange").text == "  int first = 7, second = 8;\n"
    assert changed.block("block-2") != document.block("block-2")  # it moved
    assert changed.block("block-2").text == document.block("block-2").text
    assert changed.replace("exchange", document.block("exchange").text).text == SOURCE


@pytest.mark.parametrize(
    "new",
    [
        "// EVOLVE-BLOCK-END\nint free;\n// EVOLVE-BLOCK-START more\n",
        "// EVOLVE-BLOCK-START\n",
        "/* open\n",
        'auto s = R"(\n',
        "int a; \\\n// \\\n",
        "#if 0\n",
        "#endif\n#if 1\n",
        "#else\n",
    ],
)
def test_text_that_reaches_the_frozen_part_is_refused(new):
    with pytest.raises(UsageError):
        evolve.parse(SOURCE).replace("exchange", new)


@pytest.mark.parametrize(
    "text, said",
    [
        ("// EVOLVE-BLOCK-START\n", "line 1: EVOLVE-BLOCK-START without"),
        ("int a;\n// EVOLVE-BLOCK-END\n", "line 2: EVOLVE-BLOCK-END without"),
        (
            "// EVOLVE-BLOCK-START\n// EVOLVE-BLOCK-START\n// EVOLVE-BLOCK-END\n",
            "line 2: EVOLVE-BLOCK-START inside",
        ),
        ("// EVOLVE-BLOCK-START a\n// EVOLVE-BLOCK-END\n" * 2, "line 3: there is already an evolve block a"),
        ("int a; // EVOLVE-BLOCK-START\n// EVOLVE-BLOCK-END\n", "alone on its line"),
        ("// EVOLVE-BLOCK-START two words\n// EVOLVE-BLOCK-END\n", "one name"),
    ],
)
def test_bad_markers_are_named_with_their_line(text, said):
    with pytest.raises(UsageError, match=said) as error:
        evolve.parse(text)
    assert error.value.exit_code == 2


def test_frozen_and_unknown_spans_cannot_be_replaced():
    document = evolve.parse(SOURCE)
    with pytest.raises(UsageError):
        document.replace(document.spans[0], "int x;\n")
    with pytest.raises(UsageError, match="no evolve block other"):
        document.replace("other", "")


def test_annotate_and_strip_are_inverse():
    plain = evolve.strip(SOURCE)
    assert evolve.strip(evolve.annotate(plain, [(8, 9, "a"), (11, 11, "b")])) == plain
    assert [
        span.name for span in evolve.parse(evolve.annotate(plain, [(8, 9, "a"), (11, 11, "b")])).blocks
    ] == ["a", "b"]
    with pytest.raises(UsageError, match="overlaps"):
        evolve.annotate(plain, [(8, 10, "a"), (9, 11, "b")])
    with pytest.raises(UsageError, match="inside a comment or a string"):
        evolve.annotate(plain, [(4, 4, "a")])


LINE = st.sampled_from(
    [
        "int a = 1;",
        "  call(a, b);",
        "// a comment",
        "/* one */ x();",
        'auto s = "// text";',
        "",
        "char c = '\"';",
        'auto r = R"(// raw " )";',
        "#if 0\n#else\n#endif",
        "}",
        "int n = 1'000;",
        "\tindented();",
    ]
)
LINES = st.lists(LINE, max_size=6).map(lambda lines: "".join(line + "\n" for line in lines))


@given(st.lists(st.tuples(LINES, LINES), max_size=3), LINES)
def test_round_trip(parts, tail):
    text = (
        "".join(
            f"{before}  // EVOLVE-BLOCK-START\n{inside}  // EVOLVE-BLOCK-END\n" for before, inside in parts
        )
        + tail
    )
    document = evolve.parse(text)
    assert [span.text for span in document.blocks] == [inside for _, inside in parts]
    assert "".join(span.text for span in document.spans) == text == document.text


@given(st.lists(st.tuples(LINES, LINES), min_size=1, max_size=3), LINES, LINES, st.data())
def test_replacing_any_block_keeps_the_rest(parts, tail, new, data):
    text = (
        "".join(f"{before}// EVOLVE-BLOCK-START\n{inside}// EVOLVE-BLOCK-END\n" for before, inside in parts)
        + tail
    )
    document = evolve.parse(text)
    chosen = data.draw(st.sampled_from(document.blocks))
    changed = document.replace(chosen, new)
    assert changed.frozen == document.frozen
    assert changed.block(chosen.name).text == new
    others = [span.text for span in document.blocks if span.name != chosen.name]
    assert [span.text for span in changed.blocks if span.name != chosen.name] == others


@given(st.text(alphabet="ab/*\"'\\\n R()EVOLVE-BLOCK-START", max_size=60))
def test_any_text_is_split_or_refused_cleanly(text):
    try:
        document = evolve.parse(text)
    except UsageError:
        return
    assert "".join(span.text for span in document.spans) == text


def patched(search, replace):
    return apply_patches(evolve.parse(SOURCE), [Patch(search, replace)])


def test_exact_then_loose_then_alike():
    assert "int first = 9;" in patched("  int first = 1;\n", "  int first = 9;\n").block("exchange").text
    assert patched("call(first, second);", "call(second);").block("block-2").text == "call(second);\n"
    near = "  int frist = 1;\n  int second = 2;\n"
    assert patched(near, "  int both = 3;\n").block("exchange").text == "  int both = 3;\n"


@pytest.mark.parametrize(
    "search, replace, said",
    [
        ("  int between = 0;\n", "  int between = 1;\n", "frozen"),
        ("  int nowhere = 0;\n", "", "not in any evolve block"),
        ("int", "long", "found"),
        ("  int first = 1;\n", "  int first = 1;\n", "changes nothing"),
        ("", "x", "searches for nothing"),
    ],
)
def test_patches_that_are_refused(search, replace, said):
    with pytest.raises(PatchError, match=said) as error:
        patched(search, replace)
    assert error.value.exit_code == 1


def test_a_text_with_several_patches():
    text = (
        "Two changes.\n<<<<<<< SEARCH\n  int first = 1;\n=======\n  int first = 5;\n>>>>>>> REPLACE\nand\n"
        "<<<<<<< SEARCH\n  call(first,   second);\n=======\n>>>>>>> REPLACE\n"
    )
    changed = apply_patches(evolve.parse(SOURCE), parse_patches(text))
    assert "first = 5" in changed.block("exchange").text and changed.block("block-2").text == ""
    with pytest.raises(PatchError, match="no end"):
        parse_patches("<<<<<<< SEARCH\nx\n=======\n")
    with pytest.raises(PatchError, match="there is no patch"):
        apply_patches(evolve.parse(SOURCE), parse_patches("no patch here"))
