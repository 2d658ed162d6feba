"""Configuration of Sphinx, which scripts/docs.sh runs: the Markdown of the repository as a site.

The pages are read where they are, so this file does what GitHub does for them: the README is
the first page, and links lead to other pages or to files of the repository. It also
gives the pages their places in the navigation.
"""

import posixpath
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

log = logging.getLogger(__name__)
root = Path(__file__).parents[2]

# The path of the module is the address of the repository.
repository = "https://" + re.search(r"(?m)^module (\S+)$", (root / "go.mod").read_text())[1]
files = frozenset(subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")) - {""}
folders = frozenset(str(folder) for file in files for folder in Path(file).parents)

project = html_title = "Slipstream"
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "bench/README.md", "deploy/README.md"]
exclude_patterns = [".*", "site"]
extensions = ["myst_parser"]
smartquotes = False
highlight_language = "text"

myst_gfm_only = True
myst_heading_anchors = 6
myst_enable_extensions = ["html_image"]

html_theme = "furo"
html_theme_options = {"source_view_link": repository + "/blob/main/{filename}", "source_edit_link": repository + "/edit/main/{filename}"}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_copyright = False
html_use_index = False

# The navigation: for a page, the groups of pages below it. A page that is in no group is an error.
# An entry that ends with / is all pages of a folder in the order in which the page links to them, one that ends with * in their own order.
navigation = {
    "README": {
        "Tutorials": ["docs/tutorial-postgres", "docs/tutorial-redis", "docs/tutorial-thrift", "docs/tutorial-profiling"],
        "Guides": ["docs/THRIFT", "docs/BENCH", "docs/bench-flags", "docs/MIGRATION", "docs/MIGRATION-TARANTOOL", "docs/MIGRATION-THRIFT"],
        "Operation": ["docs/OPERATIONS", "docs/SECURITY", "deploy/README"],
        "Background": ["docs/DESIGN", "docs/PERFORMANCE", "bench/README", "docs/articles"],
        "Project": ["CHANGELOG", "MIGRATION", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"],
    },
    "docs/OPERATIONS": {None: ["docs/operations/"]},
    "docs/DESIGN": {None: ["docs/design/*", "docs/decisions/*"]},
}


def link_pages(app, doctree):
    """Makes links to files relative to the page lead to pages of the site or to the repository."""
    env = app.env
    page = env.docname
    linked = []
    for node in list(doctree.findall(nodes.reference)):
        link = urlsplit(node.get("refuri", ""))
        if link.scheme or link.netloc or not (link.path or link.fragment):
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(link.path))) if link.path else page + ".md"
        target = path.removesuffix(".md") if path.endswith(".md") else posixpath.normpath(path + "/README")
        if target in env.found_docs:
            linked.append(target)
            # MyST-Parser resolves it, and warns if the page has no such title.
            node.replace_self(page_link(node, page, target, unquote(link.fragment)))
        elif path in files or path in folders:
            kind = "blob" if path in files else "tree"
            node["refuri"] = f"{repository}/{kind}/main/{quote(path)}" + (f"#{link.fragment}" if link.fragment else "")
        else:
            log.warning("a link to %s, which the repository does not have", node["refuri"], location=node, type="link")
    for caption, entries in navigation.get(page, {}).items():
        pages = [p for entry in entries for p in pages_of(entry, linked, env.found_docs)]
        for absent in set(pages) - env.found_docs:
            log.warning("the navigation in docs/site/conf.py has %s, which is no page", absent, type="navigation")
        doctree.next_node(nodes.section).append(table_of_contents(page, caption, pages))


def page_link(node, page, target, title):
    text = nodes.inline("", "", *node.children)
    link = addnodes.pending_xref(
        "", text, refdomain="doc", reftype="myst", refdoc=page, reftarget=target, reftargetid=title or None, refexplicit=True
    )
    link.source, link.line = node.source, node.line
    return link


def pages_of(entry, linked, pages):
    folder = entry.rstrip("*")
    if not folder.endswith("/"):
        return [entry]
    first = linked if folder == entry else []
    return list(dict.fromkeys(p for p in [*first, *sorted(pages)] if p.startswith(folder)))


def table_of_contents(page, caption, pages):
    """Returns what the directive toctree would, which is not Markdown and so not in the pages."""
    tree = addnodes.toctree(
        "", parent=page, entries=[(None, p) for p in pages], includefiles=pages, maxdepth=-1, caption=caption, rawcaption=caption or "",
        rawentries=[], glob=False, hidden=True, includehidden=False, numbered=0, titlesonly=True,
    )  # fmt: skip
    return nodes.compound("", tree, classes=["toctree-wrapper"])


def title_code(app, doctree):
    """Shows the titles of code blocks, as in ```go title="main.go", of which MyST-Parser knows nothing."""
    lines = Path(app.env.doc2path(app.env.docname)).read_text().splitlines()
    for number, block in enumerate(list(doctree.findall(nodes.literal_block)), 1):
        title = block.line and re.match(r'\s*```\w+ title="([^"]+)"', lines[block.line - 1])
        if title:
            titled = nodes.container("", literal_block=True, ids=[f"code-{number}"], classes=["literal-block-wrapper"])
            block.replace_self(titled)
            titled += [nodes.caption("", title[1]), block]


def write_index(app, error):
    if error is None:
        shutil.copyfile(Path(app.outdir, root_doc + ".html"), Path(app.outdir, "index.html"))


def setup(app):
    # The collectors of links and tables of contents have priority 500.
    app.connect("doctree-read", link_pages, priority=400)
    app.connect("doctree-read", title_code)
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
