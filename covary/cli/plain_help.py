"""How --help shows a command: as typer does, without what only its makers understand."""

from typing import Any

from typer.core import TyperCommand


class PlainHelp:
    """Leaves out the <bool> of --help, and the braces around arguments that must be given."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option --help, as one without a value."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        option.metavar = ""
        return option

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the line on usage."""
        pieces = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class Command(PlainHelp, TyperCommand):
    """One command of covary."""
