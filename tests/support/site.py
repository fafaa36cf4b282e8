"""The functions that write pages of a site."""

from loadstone.report.campaign_page import build_campaign
from loadstone.report.comparison_page import build_comparison
from loadstone.report.output import write_assets
from loadstone.report.overview_pages import build_index
from loadstone.report.variant_page import build_variants

__all__ = ["build_campaign", "build_comparison", "build_index", "build_variants", "write_assets"]
