"""The documentation site: ``sphinx-build -W --keep-going -n doc doc/_build`` from the root of a checkout."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parent))      # gallery_style

project = "cmargin"
author = "cmargin developers"
release = version = installed("cmargin")
copyright = f"{author}; version {release}"

extensions = [
    "myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery", "results/cells"]
highlight_language = "none"            # indented blocks of the pages are formulas and tables more often than Python
default_role = "autolink"              # `fit` in a docstring: a link where there is such an object, italics elsewhere

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False    # the template of a class lists its methods
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r".*\.py",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib", "gallery_style.reset"),
}

html_theme = "pydata_sphinx_theme"
html_title = "cmargin"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
}
html_sidebars = {"index": []}


def _mathml(translator, node, as_block):
    """MathML is drawn by browsers themselves: a page needs no script from elsewhere."""
    from docutils import nodes

    tag = "div" if as_block else "span"
    translator.body.append(f'<{tag} class="formula">{tex2mathml(node.astext(), as_block=as_block)}</{tag}>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml", inline_renderers=(lambda self, node: _mathml(self, node, False), None),
        block_renderers=(lambda self, node: _mathml(self, node, True), None))
    return {"parallel_read_safe": True}
