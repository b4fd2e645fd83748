"""Sphinx configuration: `sphinx-build -W -b html docs docs/_build`."""

import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path

import spinney
from spinney._boosting.options.recipe import to_markdown
from spinney._estimator.docstrings import parameter_texts

project = "spinney"
author = "The spinney developers"
copyright = "The spinney developers"
release = version = spinney.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
exclude_patterns = ["_build", "README.md"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "spinney"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b6b3a", "color-brand-content": "#1b6b3a"},
    "dark_css_variables": {"color-brand-primary": "#7fd6a0", "color-brand-content": "#7fd6a0"},
}
pygments_style, pygments_dark_style = "friendly", "monokai"

# decisions and figures link to files of the repository; the context of autosummary holds a function
default_role = "literal"  # single backticks are code, as in docstrings
suppress_warnings = ["myst.header", "myst.xref_missing", "config.cache"]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # beside a page: apply(), and not DecisionTreeClassifier.apply()


def members_of(fullname):
    """Return the documented methods and properties of a class that are not scikit-learn's."""
    found = operator.attrgetter(fullname.removeprefix("spinney."))(spinney)
    public = [(name, value) for name, value in inspect.getmembers(found) if not name.startswith("_") and value.__doc__]
    methods = [name for name, value in public if callable(value) and _is_ours(value)]
    properties = [name for name, value in public if isinstance(value, property)]
    return {"methods": sorted(methods, key=_first_use), "properties": properties}


def _is_ours(method):
    """Return whether a method is spinney's; those of list, such as append, name no module."""
    return str(getattr(method, "__module__", None)).startswith("spinney")


def _first_use(name):
    """Sort methods as they are used: fit, predictions, then the rest by name."""
    return (name != "fit", not name.startswith("predict"), name)


autosummary_context = {"members_of": members_of}


def groups_of(class_name, names):
    """Return the parameters of an estimator by the headings that parameter_texts.toml has for them, in its order."""
    tables = parameter_texts().tables
    families = [class_name, *tables["classes"][class_name]["families"]]
    entry_of = {entry: heading for heading, entries in tables["groups"].items() for entry in entries}
    entries = {}
    for name in names:
        possible = [entry for entry in (*(f"{name}.{family}" for family in families), name) if entry in entry_of]
        if not possible:
            raise KeyError(f"{class_name}: no group of parameter_texts.toml has '{name}'")
        entries[possible[0]] = name
    groups = {}
    for entry, heading in entry_of.items():
        if entry in entries:
            groups.setdefault(heading, []).append(entries[entry])
    return groups


def group_parameters(_app, what, name, kind, _options, lines):
    """Put headings between the parameters of an estimator, after numpydoc has written them as a list."""
    class_name = name.rpartition(".")[2]
    if what != "class" or class_name not in parameter_texts().tables["classes"]:
        return
    start = lines.index(":Parameters:") + 1
    end = lines.index(":Attributes:")
    texts = {}
    for line in lines[start:end]:
        if entry := re.match(r"    \*\*(\w+)\*\*", line):
            text = texts[entry[1]] = []
        if texts:
            text.append(line)
    assert list(texts) == list(inspect.signature(kind).parameters)
    groups = groups_of(class_name, texts)
    grouped = [""]
    for heading, names in groups.items():
        if len(groups) > 1:
            grouped += [f"    .. rubric:: {heading}", ""]
        grouped += [line for name in names for line in texts[name]]
    lines[start:end] = grouped


def hide_private_parameters(_app, what, _name, _kind, _options, signature, returned):
    """Leave the private fields of a dataclass out of its signature."""
    if what == "class" and signature:
        return re.sub(r", _\w+", "", signature), returned
    return None


def print_recipe(_app, page, source):
    """Put the table of the default settings of boosting where its page asks for it."""
    if page == "defaults":
        source[0] = source[0].replace("<!-- the recipe of the defaults -->", to_markdown())


def draw_pictures(_app):
    """Draw the pictures of the pages, if the package or a program that draws them has changed since the last time."""
    docs = Path(__file__).parent
    programs, drawn = docs.parent / "tools", docs / "pictures" / ".drawn"
    package = Path(spinney.__file__).parent
    sources = [*package.rglob("*.py"), *package.glob("*.so"), *programs.glob("*pictures*.py")]
    if not drawn.exists() or drawn.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        subprocess.run([sys.executable, programs / "make_pictures.py"], check=True)
        drawn.touch()


def setup(app):
    """Have Sphinx draw the pictures, print the recipe of the defaults from its table, and group parameters."""
    app.connect("builder-inited", draw_pictures)
    app.connect("source-read", print_recipe)
    app.connect("autodoc-process-docstring", group_parameters, priority=600)
    app.connect("autodoc-process-signature", hide_private_parameters)
