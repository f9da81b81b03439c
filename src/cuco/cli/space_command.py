"""``cuco space``: the design space, its rules and presets, and what is valid where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuco.cli.options import Backend, BackendName, Json, LsaTeam

if TYPE_CHECKING:
    from cuco.space import SpaceContext

_MAIN = "Find out"


def register(app: typer.Typer) -> None:
    app.command("space", rich_help_panel=_MAIN)(space)


def space(
    ranks: Annotated[int, typer.Option(metavar="N", help="Ranks.")] = 4,
    lsa_team: LsaTeam = None,
    backend: Backend = BackendName.auto,
    op: Annotated[str, typer.Option(metavar="OP", help="The communication, as AllGather.")] = "AllGather",
    data_dependent: Annotated[
        bool, typer.Option("--data-dependent", help="Sizes or peers are known only at run time.")
    ] = False,
    check: Annotated[
        str | None, typer.Option(metavar="DIRECTIVE", help="Judge one directive or preset instead.")
    ] = None,
    valid: Annotated[bool, typer.Option("--valid", help="List every valid directive.")] = False,
    json: Json = False,
) -> None:
    """The design space: its dimensions, rules and presets, and the directives that are valid in a context."""
    from cuco.cli.output import emit

    context = _context(ranks, lsa_team, backend, op, data_dependent)
    if check is not None:
        _check(check, context, json)
        return
    result = _describe(context, listed=valid)
    if json:
        emit(result)
    else:
        _print(result)


def _context(
    ranks: int, lsa_team: int | None, backend: BackendName, op: str, data_dependent: bool
) -> SpaceContext:
    from cuco.space import make_context

    names = {"lsa": "LSA", "gin": "GIN", "hybrid": "Hybrid"}
    backends = None if backend is BackendName.auto else [names[backend.value]]
    return make_context(
        ranks=ranks, lsa_team=lsa_team, backends=backends, op=op, data_dependent=data_dependent
    )


def _check(text: str, context: SpaceContext, json: bool) -> None:
    from cuco.cli.output import emit, table
    from cuco.errors import EXIT_REJECTED
    from cuco.space import parse_directive, presets, validate

    named = presets().get(text.lower())
    directive = named.directive if named else parse_directive(text)
    violations = validate(directive, context)
    if json:
        emit(
            {
                "directive": directive.to_json(),
                "key": directive.key(),
                "valid": not violations,
                "violations": [
                    {"rule": v.rule, "sentence": v.sentence, "source": v.source} for v in violations
                ],
            }
        )
    elif violations:
        table("Refused", ["rule", "sentence"], [(v.rule, v.sentence) for v in violations])
    else:
        print(f"valid: {directive.key()}")
    if violations:
        raise typer.Exit(EXIT_REJECTED)


def _describe(context: SpaceContext, *, listed: bool) -> dict[str, Any]:
    from cuco.space import DIMENSIONS, enumerate_directives, presets, rules, validate

    keys = [directive.key() for directive in enumerate_directives(context)]
    result: dict[str, Any] = {
        "context": {
            "ranks": context.ranks,
            "lsa_team": context.team,
            "op": context.op,
            "backends": sorted(backend.value for backend in context.backends),
            "data_dependent": context.data_dependent,
        },
        "dimensions": [
            {
                "letter": d.letter,
                "name": d.field,
                "values": list(d.values),
                "meaning": d.meaning,
                "extension": d.extension,
            }
            for d in DIMENSIONS
        ],
        "rules": [{"id": rule.id, "sentence": rule.sentence, "source": rule.source} for rule in rules()],
        "presets": [
            {
                "name": p.name,
                "title": p.title,
                "directive": p.directive.to_json(),
                "key": p.directive.key(),
                "source": p.source,
                "valid": not validate(p.directive, context),
            }
            for p in presets().values()
        ],
        "valid_count": len(keys),
    }
    return {**result, "valid": keys} if listed else result


def _print(result: dict[str, Any]) -> None:
    from cuco.cli.output import say, table

    if "valid" in result:
        print("\n".join(result["valid"]))
        return
    table(
        "Dimensions",
        ["", "dimension", "values", "meaning"],
        [(d["letter"], d["name"], ", ".join(d["values"]), d["meaning"]) for d in result["dimensions"]],
    )
    table(
        "Presets",
        ["preset", "directive", "valid here"],
        [(p["name"], p["key"], "yes" if p["valid"] else "no") for p in result["presets"]],
    )
    table("Rules", ["rule", "sentence"], [(rule["id"], rule["sentence"]) for rule in result["rules"]])
    where = result["context"]
    say(
        f"{result['valid_count']} are valid for {where['op']} on {where['ranks']} ranks, LSA teams of "
        f"{where['lsa_team']} (chunk sizes and tile widths sampled; --valid lists them)"
    )
