"""report.html: one file that opens with no network, made of what summary computed and of what a run has seen."""

from tritonchaos.html_page.page import render_page

__all__ = ["render_page"]
