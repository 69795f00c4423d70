"""The page of the Python names: every public name, its signature and its docstring, as the code has them."""

import ast
import inspect
import re
from textwrap import dedent
from typing import Any

import covary

INTRO = """\
# Python

Written by `./run docs` from the docstrings. A table is a Polars, pandas or Arrow table, or a path as on the
[command line](commands.md). Every error is a `CovaryError`, whose text says what to do. `import covary` loads
neither Spark nor pandas.

```python
import covary

index = covary.build_index("data/", into="my.covary")
hits = index.query("sales.csv", key="date", value="revenue")
for hit in hits:
    print(hit.table, hit.value, hit.correlation, hit.low, hit.high, hit.q_value)
```
"""
GROUPS = {
    "Build and keep": ("build_index", "remove_tables", "compact_index", "read_history", "check_index"),
    "Ask": ("open_index", "Index", "Hits", "Hit"),
    "Without an index": ("sketch", "join", "estimate", "Estimate", "Sketch", "JoinedSample"),
    "How keys meet": ("compare_key_sets", "distinct_keys", "KeySets", "SetEstimate"),
    "Errors": ("CovaryError",),
}
METHODS = {"Index": ("query",)}
ON_SPARK = ("query", "pairs")
LONGEST_SIGNATURE = 100
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$", re.M)
ENTRY = re.compile(r"^    (\w+): ", re.M)


def describe() -> str:
    """Describe every public name of covary and of covary.spark."""
    parts = [INTRO]
    for heading, names in GROUPS.items():
        parts += [f"## {heading}\n", *(_section(f"covary.{name}", getattr(covary, name)) for name in names)]
    parts += [
        "## On Spark\n",
        *(_section(f"covary.spark.{name}", getattr(covary.spark, name)) for name in ON_SPARK),
    ]
    return "\n".join(parts)


def _section(name: str, value: Any) -> str:
    if not inspect.isclass(value):
        return f"### {name}\n\n```python\n{_signature(name, value)}\n```\n\n{_docstring(value)}\n"
    methods = "\n".join(
        f"```python\n{_signature(f'{value.__name__}.{method}', getattr(value, method))}\n```\n\n"
        f"{_docstring(getattr(value, method))}\n"
        for method in METHODS.get(value.__name__, ())
    )
    return f"### {name}\n\n{_docstring(value)}\n" + (f"\n{methods}" if methods else "")


def _signature(name: str, function: Any) -> str:
    """Return what a function takes and returns: its types as the code has them, and its defaults."""
    node = ast.parse(dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    types = {
        argument.arg: ast.unparse(argument.annotation).strip("'")
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.kwarg)
        if argument and argument.annotation
    }
    parts, keywords = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            parts.append("*")
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{stars}{parameter.name}: {_type_of(parameter, types)}{default}")
    returned = f" -> {ast.unparse(node.returns).strip(chr(39))}" if node.returns else ""
    line = f"{name}({', '.join(parts)}){returned}"
    if len(line) <= LONGEST_SIGNATURE:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def _type_of(parameter: inspect.Parameter, types: dict[str, str]) -> str:
    """Return the type of a parameter as the code has it; an option of a query stands in no signature."""
    return types.get(parameter.name) or inspect.formatannotation(parameter.annotation)


def _docstring(value: Any) -> str:
    """Return a docstring as Markdown: Google's sections become lists."""
    text = inspect.getdoc(value) or ""
    opening, *sections = SECTION.split(text)
    parts = [opening.strip()]
    for heading, body in zip(sections[::2], sections[1::2], strict=True):
        lines, after = _section_and_rest(body)
        if ENTRY.search(lines):
            entries = ENTRY.sub(r"- **\1**: ", lines)
            parts.append(f"{heading}:\n\n" + re.sub(r"\n {5,}", " ", entries).strip())
        else:
            parts.append(f"{heading}: {' '.join(lines.split())}")
        parts += [after] if after else []
    return "\n\n".join(parts)


def _section_and_rest(body: str) -> tuple[str, str]:
    """Separate the indented lines of a section from what follows it."""
    lines = body.strip("\n").split("\n")
    count = next((n for n, line in enumerate(lines) if line and not line.startswith("    ")), len(lines))
    return "\n".join(lines[:count]).rstrip(), "\n".join(lines[count:]).strip()
