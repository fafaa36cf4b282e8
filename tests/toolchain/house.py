"""How large the project is, against its limits: ``make house``. Exit code 1 when a limit is passed.

Code lines are lines with code: without blank lines, comments and docstrings.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "scripts/loadstone"
LIMITS = {
    "code lines of the library": 23_500,
    "modules of the library": 190,
    "loose modules at its top level": 5,
    "lines of its longest module": 500,
    "lines of functions in rule files": 250,
    "words of README.md": 1_200,
    "words of CONTRIBUTING.md": 1_500,
    "words of config/README.md": 300,
}
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Number of lines of Python with code on them."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def function_lines(rules: str) -> int:
    """Lines of the functions in a rule file: from ``def`` to the next line that is not indented."""
    lines = rules.splitlines()
    count = 0
    inside = False
    for line in lines:
        if re.match(r"(async )?def |@", line):
            inside = True
        elif line and not line[0].isspace() and not line.startswith(")"):
            inside = False
        count += inside and bool(line.strip())
    return count


def words(document: Path) -> int:
    """Words as ``wc -w`` counts them."""
    return len(document.read_text().split())


def by_package() -> dict[str, tuple[int, int]]:
    """Code lines and modules of each package of the library; loose modules under ''."""
    found: dict[str, tuple[int, int]] = {}
    for file in sorted(LIBRARY.rglob("*.py")):
        parts = file.relative_to(LIBRARY).parts
        name = parts[0] if len(parts) > 1 else ""
        lines, modules = found.get(name, (0, 0))
        found[name] = (lines + code_lines(file.read_text()), modules + 1)
    return found


def figures() -> dict[str, int]:
    """Every figure that has a limit, in the order of `LIMITS`."""
    packages = by_package()
    return {
        "code lines of the library": sum(lines for lines, _ in packages.values()),
        "modules of the library": sum(modules for _, modules in packages.values()),
        "loose modules at its top level": sum(file.name != "__init__.py" for file in LIBRARY.glob("*.py")),
        "lines of its longest module": max(len(file.read_text().splitlines()) for file in LIBRARY.rglob("*.py")),
        "lines of functions in rule files": sum(function_lines(file.read_text()) for file in ROOT.glob("rules/*.smk")),
        "words of README.md": words(ROOT / "README.md"),
        "words of CONTRIBUTING.md": words(ROOT / "CONTRIBUTING.md"),
        "words of config/README.md": words(ROOT / "config/README.md"),
    }


def main() -> int:
    found = figures()
    for name, (lines, modules) in by_package().items():
        print(f"{name or '(loose)':>12}  {lines:>6,} code lines  {modules:>4} modules")
    print()
    for name, value in found.items():
        print(f"{name:<34} {value:>7,}  of at most {LIMITS[name]:>7,}{'' if value <= LIMITS[name] else '  TOO MANY'}")
    return int(any(value > LIMITS[name] for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main())
