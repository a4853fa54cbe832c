"""check_types: every Fortran type with bind(c) is like the C structure that its comment names.

It has the same size, and the same components at the same offsets. gfortran prints the type as C
(-fc-prototypes); a C compiler compares both. Arguments, lists with ';': FORTRAN, its options, C, its options,
FOLDERS, OUTPUT.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

#: A component has the same place and size in both types.
SAME = (
    "#define SAME(a, b, of, name) _Static_assert(offsetof(a, of) == offsetof(b, of) && "
    "sizeof(((a *)0)->of) == sizeof(((b *)0)->of), name);"
)
#: The comment with the structure, and the type.
TYPE = re.compile(r"(?:!> (?P<comment>.*)\n *)?type, *(?:public, )?bind\(c\).*:: (?P<name>\w+)")


def definition_of(name: str, printed: str) -> str:
    """Return C's definition of a type, after those of the types in it."""
    match = re.search(rf"typedef struct {name} {{([^}}]*)}} {name};", printed)
    assert match, f"gfortran does not print {name}"
    inner = [each for each in re.findall(r"(\w+_t) ", match[1]) if f"struct {each} " in printed]
    return "\n".join([*(definition_of(each, printed) for each in inner), match[0]])


def main() -> None:
    """Compare the types of all sources in the folders."""
    fortran, fortran_options, c, c_options, folders, output = sys.argv[1:]
    out = Path(output)
    out.mkdir(parents=True, exist_ok=True)
    headers = [file for folder in folders.split(";") for file in Path(folder).glob("*.h")]
    checked = 0
    for source in (file for folder in folders.split(";") for file in sorted(Path(folder).glob("*.f90"))):
        types = list(TYPE.finditer(source.read_text()))
        if not types:
            continue
        words = [
            fortran,
            *fortran_options.split(";"),
            "-fc-prototypes",
            "-fsyntax-only",
            "-J",
            output,
            source,
        ]
        printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        for each in types:
            name, structure = each["name"], re.search(r"struct \w+", each["comment"] or "")
            assert structure, f"{source}: no structure in the comment above {name}: write '!> struct NAME'"
            matches = [
                file
                for file in headers
                if re.search(rf"^(typedef )?{structure[0]} {{", file.read_text(), re.MULTILINE)
            ]
            assert matches, f"{source}: no header has {structure[0]}"
            definition = definition_of(name, printed)
            body = re.sub(r"/\*.*?\*/", "", definition[definition.rindex("{") :])
            members = re.findall(r"(\w+) *(?:\[\d+\])?;", body[: body.index("}")])
            lines = [f'#include "{matches[0]}"', "#include <stddef.h>", SAME, definition]
            lines += [f'SAME({structure[0]}, {name}, {member}, "{member}")' for member in members]
            lines.append(f'_Static_assert(sizeof({structure[0]}) == sizeof({name}), "size");\n')
            test = out / f"{name}.c"
            test.write_text("\n".join(lines))
            subprocess.run([c, *c_options.split(";"), "-fsyntax-only", test], check=True)
            checked += 1
    assert checked, f"no type with bind(c) in {folders}"
    print(f"{checked} types")


if __name__ == "__main__":
    main()
