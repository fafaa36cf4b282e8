"""The static site: a start page, a page per campaign, and the files that their charts load. See `loadstone.report.site`."""
