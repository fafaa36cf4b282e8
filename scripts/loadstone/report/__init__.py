"""The static site: a start page, a page per campaign, and what their charts load. See `loadstone.report.site`."""
