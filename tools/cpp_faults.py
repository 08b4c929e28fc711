"""List the small faults that can be planted in a C++ file: one changed operator, number or statement each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from python_faults import Edit

# clang-format puts blanks around binary operators and none inside template arguments: `a < b`, `vector<int>`.
REPLACEMENTS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "+=": "-=",
    "-=": "+=",
    "&": "|",
    "|": "&",
    **{"0": "1", "1": "0", "2": "3", "true": "false", "false": "true", "min": "max", "max": "min"},
    **{"any_of": "all_of", "all_of": "any_of", "continue;": ";", "return;": ";", "break;": ";", "!": ""},
}
# What is left alone: comments, texts, directives, assertions, parameters of templates, what an error says.
SILENT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|^\s*\#(?:[^\n]*\\\n)*[^\n]*
    |\w*(?:ASSERT|assert)\w*\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)
    |\btemplate\s*<[^\n]*|\b(?:throw|requires|concept|using)\b[^;]*;""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
PLACES = re.compile(
    r"(?<=[ ])(?P<operator>[<>=!]=|[<>]|&&|\|\||[+\-*/]=?|[&|])(?=[ \n])"
    r"|(?<![\w.<\"])(?P<word>[012]|true|false|(?:any|all)_of|continue;|return;|break;)(?![\w.>'])"
    r"|\bstd::(?:ranges::)?(?P<bound>min|max)(?=\()"
    r"|(?<=[( ])(?P<negation>!)(?=[\w(])"
    r"|(?<=\n)[ ]+(?P<statement>(?!return|else|case|delete)[\w.>\[\]()-]+(?:\([^;{}=]*\)| [+-]?= [^;{}]*)"
    r"|[+]{2}\w+);(?=\n)",
)


def cpp_edits(text: str) -> Iterator[Edit]:
    """Yield each fault for the C++ file `text`, which clang-format has written."""
    visible = SILENT.sub(lambda found: re.sub(r"[^\n]", "~", found[0]), text)
    position = 0
    while found := PLACES.search(visible, position):
        kind = str(found.lastgroup)
        begin, end = found.span(kind)
        old = text[begin:end]
        new = REPLACEMENTS.get(old, "") if kind != "statement" else ""
        yield begin, old, new
        position = begin + 1 if kind == "statement" else found.end()
