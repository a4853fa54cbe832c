"""Record a terminal session and draw it as an animated SVG, without fonts or scripts from elsewhere.

terminal.py CAST [--draw PICTURE] -- COMMAND...   run COMMAND in a terminal, and write CAST (asciicast, version 2)
terminal.py CAST --draw PICTURE                   draw a CAST, also one that asciinema has written

    .pagewise/venv/bin/pip install pyte==0.8.2      # not part of the tests' packages
    .pagewise/venv/bin/python docs/pictures/terminal.py session.cast --draw docs/pictures/terminal.svg -- \
        ./pagewise kernels --env quick --kernels random_access --rounds 4 --no-sweep
"""

import argparse
import codecs
import fcntl
import json
import os
import pty
import shlex
import struct
import sys
import termios
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pyte

COLUMNS, ROWS = 100, 36
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 16
#: Seconds: pictures closer than this are one; longer pauses are cut; how long the last picture stays.
CLOSEST, LONGEST_PAUSE, LAST = 0.2, 1.5, 6.0
FOREGROUND, BACKGROUND = "#d8dee9", "#1d2129"
COLORS = {
    "black": "#4c566a",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#e5e9f0",
}

Event = tuple[float, str]
Run = tuple[str, str, bool]


def record(command: list[str]) -> list[Event]:
    """Runs a command in a terminal that shows it; what it printed, and when. Exits if it fails."""
    begin = time.monotonic()
    events: list[Event] = [(0.0, f"$ {shlex.join(command)}\r\n")]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 65536)
        events.append((time.monotonic() - begin, decoder.decode(data)))
        return data

    size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
        os.execvp(command[0], command)
    while True:
        try:
            if not (data := read(terminal)):
                break
        except OSError:
            break
        os.write(1, data)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        sys.exit(f"terminal.py: {shlex.join(command)} ended with {code}")
    return events


def write_cast(file: Path, events: list[Event]) -> None:
    """https://docs.asciinema.org/manual/asciicast/v2/."""
    lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS})]
    lines += [json.dumps([round(moment, 3), "o", text], ensure_ascii=False) for moment, text in events]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_cast(file: Path) -> tuple[int, int, list[Event]]:
    """Columns, rows and output of a recording."""
    header, *lines = file.read_text(encoding="utf-8").splitlines()
    size = json.loads(header)
    if size["version"] != 2:
        sys.exit(f"terminal.py: {file} is version {size['version']} of asciicast; version 2 is needed")
    events = [(moment, text) for moment, kind, text in map(json.loads, lines) if kind == "o"]
    return size["width"], size["height"], events


def pictures(columns: int, rows: int, events: list[Event]) -> Iterator[tuple[float, list[tuple[Run, ...]]]]:
    """Each picture of the terminal with the seconds that it stays."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.Stream(screen)
    shown = 0.0
    for number, (moment, text) in enumerate(events):
        stream.feed(text)
        is_last = number + 1 == len(events)
        stays = LAST if is_last else events[number + 1][0] - moment
        shown += min(stays, LONGEST_PAUSE) if not is_last else stays
        if is_last or shown >= CLOSEST:
            yield shown, [_runs(screen, row) for row in range(rows)]
            shown = 0.0


def _runs(screen: pyte.Screen, row: int) -> tuple[Run, ...]:
    """A row as pieces of the same color and weight, without blanks at its end."""
    runs: list[Run] = []
    for column in range(screen.columns):
        cell = screen.buffer[row][column]
        color = COLORS.get(
            cell.fg.removeprefix("bright"), FOREGROUND if cell.fg == "default" else f"#{cell.fg}"
        )
        if runs and runs[-1][1:] == (color, cell.bold):
            runs[-1] = (runs[-1][0] + cell.data, color, cell.bold)
        else:
            runs.append((cell.data, color, cell.bold))
    while runs and not runs[-1][0].strip():
        runs.pop()
    return tuple(runs)


def svg(columns: int, rows: int, frames: list[tuple[float, list[tuple[Run, ...]]]]) -> str:
    """The pictures one after the other, in a loop. A row that several pictures have is written once."""
    width, height = columns * CELL_WIDTH + 2 * MARGIN, rows * CELL_HEIGHT + 2 * MARGIN
    total = sum(seconds for seconds, _ in frames)
    rows_by_content = {row: f"r{n}" for n, row in enumerate(dict.fromkeys(r for _, f in frames for r in f))}
    styles, groups, begin = [], [], 0.0
    for number, (seconds, picture) in enumerate(frames):
        start, end = 100 * begin / total, 100 * (begin + seconds) / total
        begin += seconds
        first = "" if number == 0 else "0%{visibility:hidden}"
        styles.append(
            f"@keyframes k{number}{{{first}{start:.3f}%{{visibility:visible}}{end:.3f}%{{visibility:hidden}}}}"
        )
        uses = "".join(
            f'<use href="#{rows_by_content[row]}" y="{MARGIN + (line + 1) * CELL_HEIGHT - 4}"/>'
            for line, row in enumerate(picture)
            if row
        )
        groups.append(
            f'<g style="visibility:hidden;animation:k{number} {total:.2f}s step-end infinite">{uses}</g>'
        )
    symbols = [_text(name, row) for row, name in rows_by_content.items() if row]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}">',
            f"<style>text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}{''.join(styles)}</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
            f"<defs>{''.join(symbols)}</defs>",
            *groups,
            "</svg>",
        ]
    )


def _text(name: str, row: tuple[Run, ...]) -> str:
    pieces, column = [], 0
    for text, color, bold in row:
        weight = ' font-weight="bold"' if bold else ""
        place = f'x="{MARGIN + column * CELL_WIDTH:.1f}" textLength="{len(text) * CELL_WIDTH:.1f}"'
        if text.strip():
            pieces.append(f'<tspan {place} fill="{color}"{weight}>{escape(text)}</tspan>')
        column += len(text)
    return f'<text id="{name}" xml:space="preserve">{"".join(pieces)}</text>'


def main() -> None:
    """Records, draws, or both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cast", type=Path)
    parser.add_argument("--draw", type=Path, metavar="PICTURE")
    own, command = sys.argv[1:], []
    if "--" in own:
        own, command = own[: own.index("--")], own[own.index("--") + 1 :]
    given = parser.parse_args(own)
    if command:
        write_cast(given.cast, record(command))
    if given.draw is not None:
        columns, rows, events = read_cast(given.cast)
        given.draw.write_text(svg(columns, rows, list(pictures(columns, rows, events))), encoding="utf-8")


if __name__ == "__main__":
    main()
