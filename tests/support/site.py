"""The functions that write pages of a site."""

from pathlib import Path

from loadstone.report import output
from loadstone.report.campaign_page import build_campaign
from loadstone.report.comparison_page import build_comparison
from loadstone.report.figure_drawing import chart_library
from loadstone.report.overview_pages import build_index
from loadstone.report.variant_page import build_variants

__all__ = ["build_campaign", "build_comparison", "build_index", "build_variants", "write_assets"]


def write_assets(reports: Path) -> None:
    """What all pages share."""
    output.write_assets(reports, chart_library)
