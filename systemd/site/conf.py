# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the pages of the site, for ../site.sh: Markdown files as they are, with a navigation."""

import gc
import posixpath
import re

from pygments.lexers import TextLexer

# Most of the time would go into the search for garbage in the trees of the pages, which have none.
gc.disable()

project = "restorationd"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "README.md",
    "Protocol/**.md",
    "Sources/ARCHITECTURE.md",
    "Sources/RestorationClient/RestorationClient.docc/**.md",
    "Tests/README.md",
    "systemd/RELEASING.md",
]
# A list of symbols, for DocC.
exclude_patterns = ["Sources/RestorationClient/RestorationClient.docc/RestorationClient.md"]

myst_heading_anchors = 6
myst_ref_domains = ["std"]
# Quotation marks are often the protocol's.
smartquotes = False

html_title = project
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_theme_options = {"page_width": "75rem", "body_max_width": "none", "fixed_sidebar": True}
templates_path = ["."]

# The navigation has the pages of these folders below another page.
below = {
    "Protocol/methods/": "Protocol/README",
    "Protocol/examples/": "Protocol/examples/README",
    "Sources/RestorationClient/": "Protocol/clients/swift/README",
}


def make_navigation(app, env):
    """For navigation.html, which finds it as `navigation`: of each page those below it.

    A toctree of Sphinx, which would be made anew for each page, takes a fifth of the time.
    """
    with open(f"{app.srcdir}/Protocol/README.md", encoding="utf-8") as text:
        page = text.read()
    methods = re.findall(r"^\| \[`\S+`\]\((\S+)\.md\)", page, re.MULTILINE)
    links = methods + re.findall(r"\]\(([^)#:]+)\.md[)#]", page)
    ordered = ["Protocol/README", *(posixpath.normpath(f"Protocol/{link}") for link in links), *sorted(env.found_docs)]
    navigation = {}
    for page in dict.fromkeys(ordered):
        if page not in env.found_docs or page == root_doc:
            continue
        parent = next((top for folder, top in below.items() if page.startswith(folder) and page != top), root_doc)
        navigation.setdefault(parent, []).append((page, env.titles[page].astext()))
        env.metadata[page]["orphan"] = True  # It is in no toctree.
    app.config.html_context["navigation"] = navigation


def link_reference(app, page, source):
    if page == "Protocol/clients/swift/README" and app.tags.has("reference"):
        source[0] += '\n<p><a href="../../../swift/documentation/restorationclient/">All types and methods</a></p>\n'


def setup(app):
    app.add_lexer("exchange", TextLexer)
    app.connect("source-read", link_reference)
    app.connect("env-updated", make_navigation)
