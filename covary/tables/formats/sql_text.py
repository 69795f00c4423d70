"""Names and texts written into SQL, where a driver takes no parameters for them."""


def quoted(name: str) -> str:
    """Write the name of a table or a column."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Write a text."""
    return "'" + text.replace("'", "''") + "'"
