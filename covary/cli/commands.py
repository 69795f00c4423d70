"""How every command behaves: what its --help shows, and how a mistake becomes one line and an exit code."""

import errno
import os
import sys
import warnings
from typing import Any, TextIO, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup

from covary.errors import CovaryError, Notice, tells_secrets
from covary.query.options import fill_in_choices
from covary.secrets import Secrets

USER_MISTAKE = CovaryError.exit_code
STOPPED = 130
# What typer hands over is of its own copy of click, and has no public name.
FromClick: TypeAlias = Any
UsageMistake: FromClick = typer.BadParameter.__base__


class PlainHelp:
    """Leaves out of --help its own <bool>, and the braces around arguments that must be given."""

    def get_help_option(self, ctx: FromClick) -> FromClick:
        """Return the option --help, as one without a value."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        option.metavar = ""
        return option

    def collect_usage_pieces(self, ctx: FromClick) -> list[str]:
        """Return the parts of the line on usage."""
        pieces = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class Command(PlainHelp, TyperCommand):
    """One command of covary."""

    def format_help(self, ctx: FromClick, formatter: FromClick) -> None:
        """Show the help, with what can be chosen: only now is it loaded."""
        for option in self.params:
            option.help = fill_in_choices(option.help or "")  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


class Commands(PlainHelp, TyperGroup):
    """The commands of covary."""

    def main(self, *arguments: FromClick, **settings: FromClick) -> None:
        """Run the command line, and end the process with its exit code."""
        try:
            code = super().main(*arguments, **{**settings, "standalone_mode": False})
        except UsageMistake as mistake:
            code = USER_MISTAKE
            _explain_usage(mistake.format_message(), mistake.ctx)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            code = USER_MISTAKE
            _discard_stdout()
            complain("can't write the answer: the disk is full")
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: FromClick) -> object:
        """Run one command; say in one line what the user, a signal or a closed pipe did to it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", Notice)
                warnings.showwarning = _show_warning
                _require_current_folder()
                result: object = super().invoke(ctx)
            sys.stdout.flush()
        except CovaryError as mistake:
            complain(str(mistake))
            raise typer.Exit(mistake.exit_code) from None
        except KeyboardInterrupt:
            complain("stopped; no index was changed")
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:  # whoever read our answer has enough of it
            _discard_stdout()
            raise typer.Exit(0) from None
        except Exception as problem:
            secrets = _secrets_on_the_command_line()
            if isinstance(problem, UsageMistake) or not tells_secrets(problem, secrets):
                raise
            bug = RuntimeError(secrets.hide(f"{type(problem).__name__}: {problem}"))
            raise bug.with_traceback(problem.__traceback__) from None
        return result


def complain(line: str) -> None:
    """Say on stderr, in one line, what went wrong."""
    from covary.cli.words import printable

    typer.echo(f"covary: {printable(line)}", err=True)


def _explain_usage(message: str, context: FromClick) -> None:
    if not message:  # no command was given, and the help is on the screen already
        return
    command = context.command_path if context else "covary"
    complain(f"{_secrets_on_the_command_line().hide(message)} ({command} --help explains)")


def _require_current_folder() -> None:
    """Refuse to run in a folder that was deleted, in which no relative path leads anywhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise CovaryError(
            "the folder that this was started in is no longer there; change to another"
        ) from None


def _secrets_on_the_command_line() -> Secrets:
    return Secrets.of(*sys.argv[1:])


_show_other_warning = warnings.showwarning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say in one line what is wrong with a table that was read; leave other warnings to Python."""
    if issubclass(category, Notice):
        complain(str(message))
    else:
        _show_other_warning(message, category, filename, lineno, file, line)


def _discard_stdout() -> None:
    """Send the rest of stdout nowhere: Python would complain when it closes one that takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
