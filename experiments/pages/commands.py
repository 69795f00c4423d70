"""The page of the command line: what --help says of each command, as one page."""

import inspect
from typing import Any

from typer.main import get_command

from covary.cli.app import app
from covary.query.options import fill_in_choices

INTRO = """\
# Commands

Written by `./run docs` from the command line itself; `covary COMMAND --help` says the same. Exit codes: 0
answered, 2 something to mend (one line on stderr says what), 130 stopped, 1 a bug of ours. What the answers
mean: [statistics.md](statistics.md).
"""


def describe() -> str:
    """Describe every command, its arguments and its options."""
    group = get_command(app)
    with group.make_context("covary", [], resilient_parsing=True) as context:
        names = group.list_commands(context)
        contents = " · ".join(f"[{name}](#covary-{name})" for name in names)
        return "\n".join(
            [INTRO, contents, *(_section(name, group.get_command(context, name)) for name in names)]
        )


def _section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join([f"covary {name}", *map(_usage_of, arguments), "[OPTIONS]"])
    lines = [f"\n## covary {name}\n", f"`{usage}`\n", *_paragraphs(command.help)]
    lines += ["| | | |", "|---|---|---|"]
    lines += [f"| `{_metavar(each)}` | {_default(each)} | {_cell(each.help)} |" for each in arguments]
    lines += [
        f"| `{'`, `'.join(each.opts)}{_value_of(each)}` | {_default(each)} | {_cell(each.help)} |"
        for each in options
    ]
    return "\n".join(lines)


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _usage_of(argument: Any) -> str:
    name = _metavar(argument) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _value_of(option: Any) -> str:
    return f" {option.metavar}" if option.metavar else ""


def _default(parameter: Any) -> str:
    """Say what holds where the user says nothing."""
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    shown = parameter.default is not None and parameter.default is not False and parameter.show_default
    return str(parameter.default) if shown else ""


def _cell(words: str) -> str:
    return " ".join(fill_in_choices(words).split()).replace("|", "\\|")


def _paragraphs(help: str) -> list[str]:
    """Return the paragraphs of a command's help, its examples as code."""
    return [
        f"    {each}\n"
        if each.startswith("covary ") and "\n" not in each and not each.endswith(".")
        else f"{each}\n"
        for each in inspect.cleandoc(help).split("\n\n")
    ]
