"""Settings of the documentation: `sphinx-build -W -b html docs docs/_build/html`."""

import os
import sys
from importlib.metadata import distribution
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))
os.environ.setdefault("MPLBACKEND", "Agg")

import cobpm  # noqa: E402

project = "cobpm"
author = "The cobpm developers"
project_copyright = author
version = release = cobpm.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "links",  # those from here on are in docs/_site
    "references",
]
exclude_patterns = ["_build", "_site", "gallery", "Thumbs.db", ".DS_Store"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", ".*"),  # types of other libraries and of the inside
    ("py:obj", r"[^.]*"),  # a word in backticks need not be the name of something
    ("py:obj", r"(?!cobpm\.)[a-z].*"),  # an attribute of something at hand
    ("py:obj", r".*[^\w.].*"),  # code
    ("py:obj", r"(RatioModel\.tails|Pairwise\.matrix)"),
]
default_role = "py:obj"
smartquotes_action = "qe"  # two hyphens are those of an option
highlight_language = "none"  # what a program prints is no Python
templates_path = ["_templates"]

# --- pages -------------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4  # the same as on GitHub
myst_dmath_double_inline = True
# MathJax from a package, one script for all, so that formulas need no network either.
_script = distribution("sphinx-mathjax-offline").locate_file(
    "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
)
mathjax_path = "tex-svg.js"

# --- reference ---------------------------------------------------------------------------------

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_type_aliases = {name: name for name in ("FloatArray", "IntArray", "BoolArray", "Asked")}
add_module_names = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# --- gallery -----------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",  # all of them run
    "within_subsection_order": "gallery.Order",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1000,
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 320),
    "doc_module": (),
    "reset_modules": ("matplotlib",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "write_computation_times": False,
}

# --- looks -------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"cobpm {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static", str(_script)]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {
        "color-brand-primary": "#1f5f99",
        "color-brand-content": "#1f5f99",
        "color-brand-visited": "#1f5f99",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cb7ec",
        "color-brand-content": "#7cb7ec",
        "color-brand-visited": "#7cb7ec",
    },
}
# Buttons to copy code with, not what it printed.
copybutton_selector = ", ".join(
    f"div.highlight-{language} pre" for language in ("python", "Python", "sh", "console")
)
copybutton_prompt_text = r"^\$ |^>>> "
copybutton_prompt_is_regexp = True
