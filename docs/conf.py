"""Sphinx configuration: `sphinx-build -W -b html docs docs/_build`."""

import spinney

project = "spinney"
author = "The spinney developers"
release = version = spinney.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build", "README.md", "decisions"]
html_theme = "alabaster"
html_theme_options = {"description": "Trees and ensembles for tables", "fixed_sidebar": True}
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
_REQUESTS = ("fit", "score", "predict", "predict_proba", "predict_log_proba", "decision_function")
_OF_SCIKIT_LEARN = "set_output, get_metadata_routing, score, get_params, set_params, " + ", ".join(
    f"set_{name}_request" for name in _REQUESTS
)
autodoc_default_options = {"members": True, "inherited-members": True, "exclude-members": _OF_SCIKIT_LEARN}
