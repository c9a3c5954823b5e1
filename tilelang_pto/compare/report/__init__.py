"""Reports of a comparison: as text, Markdown, JSON, CSV, PNG and HTML."""

from tilelang_pto.compare.report.comparison import CaseRow, Comparison, Side

__all__ = ["CaseRow", "Comparison", "Side"]
