# SPDX-License-Identifier: Apache-2.0
"""The README's pictures, of a run of the demonstration: what was printed, and the page of `restorationctl inspect`."""

import html
import os
import re
import subprocess

from application import APPLICATION
from stage import PATIENCE, Failure

BROWSER = "chromium"

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1b1b1f } .faint { fill: #5c5c66 } .big { font-size: 17px }
  .strong { font-weight: 600 } .killed { fill: #c62828 } .back { fill: #2f7d4f } .middle { text-anchor: middle }
  .ground { fill: #fff } .life { stroke: #4a78c8; stroke-width: 7; stroke-linecap: round }
  .life.broker { stroke: #b45309 }
  .kill { stroke: #c62828; stroke-width: 1.5; stroke-dasharray: 5 4 } .cross { stroke: #c62828; stroke-width: 3 }
  @media (prefers-color-scheme: dark) { text { fill: #e6e6ea } .faint { fill: #a2a2ad } .killed { fill: #ff7b72 }
    .back { fill: #6fcf97 } .ground { fill: #17171a } .life { stroke: #6f9be8 } .life.broker { stroke: #f0a050 }
    .kill, .cross { stroke: #ff7b72 } }
"""


class Story:
    """What the demonstration printed, as figures; a sentence that is not there is an error."""

    def __init__(self, printed):
        self.lines = [line.split() for line in printed]
        self.text = " ".join(word for line in self.lines for word in line)

    def figures(self, pattern):
        found = re.search(pattern.replace("N", r"([0-9][0-9,.]*)"), self.text)
        if not found:
            raise Failure(f"no picture: the demonstration did not print “{pattern}”")
        return found.groups()

    def rows(self, *titles):
        """The table whose header begins so, as long as there are numbers of objects."""
        start = next(number for number, line in enumerate(self.lines) if line[:len(titles)] == list(titles))
        column = titles.index("objects")
        for line in self.lines[start + 1:]:
            if len(line) <= column or not line[column].replace(",", "").isdigit():
                return
            yield line


class Drawing:
    """Lives from the top to the bottom, one a process, with what happened at their left."""

    LEFT, STEP, WIDTH, HEIGHT = 246, 108, 900, 476

    def __init__(self, names):
        self.columns = {name: self.LEFT + self.STEP * number + self.STEP // 2 for number, name in enumerate(names)}
        self.parts = []

    def text(self, x, y, words, *kinds):
        self.parts.append(f'<text x="{x}" y="{y}" class="{" ".join(kinds)}">{html.escape(words)}</text>')

    def event(self, y, head, *lines):
        kind = "killed" if head.startswith("kill") else "strong"
        self.text(20, y, head, "strong", kind)
        for number, line in enumerate(lines, 1):
            self.text(20, y + 17 * number, line, "faint")

    def life(self, name, start, end):
        x = self.columns[name]
        self.parts.append(f'<line class="life {name}" x1="{x}" x2="{x}" y1="{start}" y2="{end}"/>')

    def kill(self, y, *names):
        self.parts.append(f'<line class="kill" x1="{self.LEFT}" x2="{self.WIDTH - 10}" y1="{y}" y2="{y}"/>')
        for name in names:
            x = self.columns[name]
            self.parts.append(f'<path class="cross" d="M{x - 7} {y - 7}l14 14m0 -14l-14 14"/>')

    def beside(self, name, y, words, *kinds):
        self.text(self.columns[name], y, words, "middle", *kinds)

    def svg(self, title):
        parts = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.WIDTH} {self.HEIGHT}" role="img">\n'
                f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n"
                f'<rect class="ground" width="{self.WIDTH}" height="{self.HEIGHT}" rx="8"/>\n{parts}\n</svg>\n')


def drawing(printed):
    """The picture of what was killed and what came back."""
    story = Story(printed)
    started = {row[0]: (row[1], row[3]) for row in story.rows("process", "language", "pid", "objects")}
    back = {row[0]: row[1:] for row in story.rows("process", "objects")}
    typed, seconds = story.figures("N states in N s, each of them on disk")
    before, milliseconds = story.figures("after N acknowledged states. The broker is ready again after N ms")
    more, = story.figures("they have stored N more states meanwhile")
    alone = story.figures("decodes N objects: N as acknowledged, N newer, N different")
    compared, different = story.figures("N states compared, N different")
    picture = Drawing(["broker", *started])
    everyone = list(picture.columns)
    picture.beside("broker", 32, "broker", "strong")
    picture.beside("broker", 50, "Swift", "faint")
    for name, (language, objects) in started.items():
        picture.beside(name, 32, name, "strong")
        picture.beside(name, 50, language, "faint")
        picture.beside(name, 84, f"{objects} objects", "faint")
    picture.event(84, "An editor of five processes", "with one tree of objects")
    picture.event(146, "They save while somebody types", f"{typed} states in {seconds} s, each on disk")
    picture.event(208, "kill -9, all six at once", f"after {before} acknowledged states")
    picture.event(252, "Started again", f"the broker is ready after {milliseconds} ms")
    picture.event(328, "kill -9, one alone", f"the others go on: {more} more states")
    picture.event(372, "Started again", "it gets its objects and states back")
    for name in everyone:
        picture.life(name, 96, 204)
    picture.kill(204, *everyone)
    picture.life("broker", 236, 424)
    for name, (_, exact, newer, wrong) in back.items():
        picture.beside(name, 252, f"{count(exact, newer)} back", "back", "strong")
        picture.beside(name, 269, f"{wrong} different", "faint")
        picture.life(name, 282, 324 if name == "documents-1" else 424)
    picture.kill(324, "documents-1")
    _, exact, newer, wrong = alone
    picture.beside("documents-1", 372, f"{count(exact, newer)} back", "back", "strong")
    picture.beside("documents-1", 389, f"{wrong} different", "faint")
    picture.life("documents-1", 402, 424)
    picture.text(20, 460, f"{compared} states compared, {different} different. Everything came back.", "big", "strong")
    return picture.svg("Five processes and their broker are killed with SIGKILL, and every state comes back")


def count(*numbers):
    return f"{sum(int(number.replace(',', '')) for number in numbers):,}"


class Pictures:
    """Writes the pictures into a directory."""

    def __init__(self, directory):
        self.directory = os.path.abspath(directory)

    def photograph(self, editor, path):
        """The page of the application, with this object selected."""
        page = editor.stage.path("page.html")
        editor.restorationctl("inspect", APPLICATION, "-o", page)
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--hide-scrollbars", f"--user-data-dir={editor.stage.path('browser')}", "--window-size=1200,640",
                   f"--screenshot={self.file('inspect.png')}",
                   f"file://{page}#{'/'.join(path)}"]
        try:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE, check=True,
                           env={**os.environ, "HOME": editor.stage.path("home")})
        except FileNotFoundError:
            raise Failure(f"there is no {BROWSER}, which photographs the page; apt-get install {BROWSER}")
        except subprocess.CalledProcessError as error:
            raise Failure(f"{BROWSER} made no picture: {error.stderr.decode(errors='replace')}")

    def draw(self, printed):
        with open(self.file("demonstration.svg"), "w", encoding="utf-8") as file:
            file.write(drawing(printed))

    def file(self, name):
        return os.path.join(self.directory, name)
