"""Sphinx configuration: `sphinx-build -W -b html docs docs/_build`."""

import spinney
from spinney._boosting.options.recipe import to_markdown

project = "spinney"
author = "The spinney developers"
copyright = "The spinney developers"
release = version = spinney.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
exclude_patterns = ["_build", "README.md"]

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

suppress_warnings = ["myst.header", "myst.xref_missing"]  # decisions and figures link to files of the repository
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # beside a page: apply(), and not DecisionTreeClassifier.apply()
_REQUESTS = ("fit", "score", "predict", "predict_proba", "predict_log_proba", "decision_function")
_OF_SCIKIT_LEARN = "set_output, get_metadata_routing, score, get_params, set_params, " + ", ".join(
    f"set_{name}_request" for name in _REQUESTS
)
autodoc_default_options = {"members": True, "inherited-members": True, "exclude-members": _OF_SCIKIT_LEARN}


def print_recipe(_app, page, source):
    """Put the table of the default settings of boosting where its page asks for it."""
    if page == "defaults":
        source[0] = source[0].replace("<!-- the recipe of the defaults -->", to_markdown())


def setup(app):
    """Have Sphinx print the recipe of the defaults from the code that decides by it."""
    app.connect("source-read", print_recipe)
