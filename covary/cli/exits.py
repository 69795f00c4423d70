"""Whatever goes wrong in a command becomes a line on stderr and an exit code; nothing else decides on it."""

import errno
import os
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from covary.cli.plain_help import PlainHelp
from covary.errors import CovaryError, DamagedTable, tells_secrets
from covary.secrets import Secrets

USER_MISTAKE = CovaryError.exit_code
STOPPED = 130
UsageMistake: Any = typer.BadParameter.__base__  # typer has no public name for it


class Commands(PlainHelp, TyperGroup):
    """The commands of covary."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run the command line."""
        try:
            code = super().main(*arguments, **{**settings, "standalone_mode": False})
        except UsageMistake as mistake:
            code = USER_MISTAKE
            _say_how_to_use(mistake)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            code = USER_MISTAKE
            _let_go_of_stdout()
            complain("can't write the answer: the disk is full")
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run one command."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", DamagedTable)
                warnings.showwarning = _show_warning
                _require_a_place()
                result = super().invoke(ctx)
            sys.stdout.flush()
        except CovaryError as mistake:
            complain(str(mistake))
            raise typer.Exit(mistake.exit_code) from None
        except KeyboardInterrupt:
            complain("stopped; no index was changed")
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:  # whoever read our answer has enough of it
            _let_go_of_stdout()
            raise typer.Exit(0) from None
        except Exception as problem:
            secrets = _given()
            if isinstance(problem, UsageMistake) or not tells_secrets(problem, secrets):
                raise
            bug = RuntimeError(secrets.hide(f"{type(problem).__name__}: {problem}"))
            raise bug.with_traceback(problem.__traceback__) from None
        return result


def _require_a_place() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:  # no name would lead anywhere
        raise CovaryError(
            "the folder that this was started in is no longer there; change to another"
        ) from None


def _given() -> Secrets:
    return Secrets.of(*sys.argv[1:])


_show_other = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Say in one line what is wrong with a table that was read; leave other warnings to Python."""
    if issubclass(category, DamagedTable):
        complain(str(message))
    else:
        _show_other(message, category, *place, **more)


def complain(line: str) -> None:
    """Say on stderr, in one line, what went wrong."""
    from covary.cli.words import printable

    typer.echo(f"covary: {printable(line)}", err=True)


def _say_how_to_use(mistake: Any) -> None:
    said = mistake.format_message()
    if not said:  # nothing was asked, and the help is on the screen already
        return
    command = mistake.ctx.command_path if mistake.ctx else "covary"
    complain(f"{_given().hide(said)} ({command} --help explains)")


def _let_go_of_stdout() -> None:
    """Keep Python from complaining when it closes a stdout that takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
