"""check_types: every type that CMake writes for Fortran (PagewiseHeaders.cmake) is like its C structure.

It has the same size, and the same components at the same offsets. gfortran prints the type as C
(-fc-prototypes); a C compiler compares both. Arguments, lists with ';': FORTRAN, its options, C, its options,
FOLDERS of headers, FOLDER of the modules, OUTPUT.
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


def definition_of(name: str, printed: str) -> str:
    """Return C's definition of a type, after those of the types in it."""
    match = re.search(rf"typedef struct {name} {{([^}}]*)}} {name};", printed)
    assert match, f"gfortran does not print {name}"
    inner = [each for each in re.findall(r"(\w+_t) ", match[1]) if f"struct {each} " in printed]
    return "\n".join([*(definition_of(each, printed) for each in inner), match[0]])


def main() -> None:
    """Compare the types of all modules in the folder."""
    fortran, fortran_options, c, c_options, folders, modules, output = sys.argv[1:]
    out = Path(output)
    out.mkdir(parents=True, exist_ok=True)
    headers = {file: file.read_text() for folder in folders.split(";") for file in Path(folder).glob("*.h")}
    checked = 0
    for source in sorted(Path(modules).glob("*_h.f90")):
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
        for name in re.findall(r"type, bind\(c\), public :: (\w+)", source.read_text()):
            structure = f"struct {name.removesuffix('_t')}"
            header = next(file for file, text in headers.items() if f"\n{structure} {{" in text)
            definition = definition_of(name, printed)
            body = re.sub(r"/\*.*?\*/", "", definition[definition.rindex("{") :])
            members = re.findall(r"(\w+) *(?:\[\d+\])?;", body[: body.index("}")])
            lines = [f'#include "{header}"', "#include <stddef.h>", SAME, definition]
            lines += [f'SAME({structure}, {name}, {member}, "{member}")' for member in members]
            lines.append(f'_Static_assert(sizeof({structure}) == sizeof({name}), "size");\n')
            test = out / f"{name}.c"
            test.write_text("\n".join(lines))
            subprocess.run([c, *c_options.split(";"), "-fsyntax-only", test], check=True)
            checked += 1
    assert checked, f"no type in {modules}"
    print(f"{checked} types")


if __name__ == "__main__":
    main()
