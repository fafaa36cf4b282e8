"""The archive of raw results: its folders, file names, metadata and plans; durable writes, locks, records of tries.

In: a folder. Out: `Campaign`, `Cell` and listings of what is there. The only package that knows where a raw file lies.
"""

from loadstone.archive.layout import (
    ABANDONED,
    ASKED_AT,
    COMPLETION,
    FOREIGN,
    MAIN_STREAM,
    METADATA,
    RESOURCE_COLUMNS,
    Campaign,
    CampaignListing,
    Cell,
    CellListing,
    RawFile,
    campaigns,
    decode,
    encode,
    failure_number,
    outside,
    parse_name,
    parse_rate,
    parse_timestamp,
    scan_campaign,
    scan_cell,
)

__all__ = [
    "ABANDONED",
    "ASKED_AT",
    "COMPLETION",
    "FOREIGN",
    "MAIN_STREAM",
    "METADATA",
    "RESOURCE_COLUMNS",
    "Campaign",
    "CampaignListing",
    "Cell",
    "CellListing",
    "RawFile",
    "campaigns",
    "decode",
    "encode",
    "failure_number",
    "outside",
    "parse_name",
    "parse_rate",
    "parse_timestamp",
    "scan_campaign",
    "scan_cell",
]
