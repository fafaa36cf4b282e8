"""Faults that break what tests/README.md promises of the site."""

from mutants.mutant import Mutant

MUTANTS = {
    "Pages work for everybody": (
        Mutant(
            "pages load nothing from other hosts",
            '<link rel="stylesheet" href="{{ root }}assets/site.css">\n',
            '<link rel="stylesheet" href="{{ root }}assets/site.css">\n'
            '<link rel="stylesheet" href="https://fonts.googleapis.com/css2?family=Source+Sans+3">\n',
            ("report/test_every_page.py::test_a_page_is_quiet_asks_nobody_and_keeps_its_width",),
            where="scripts/loadstone/report/templates/base.html",
        ),
    ),
    "Pages work offline": (
        Mutant(
            "charts are drawn by a library of the site",
            '<script src="{{ root }}assets/theme.js"></script>\n',
            '<script src="{{ root }}assets/theme.js"></script>\n'
            '<script src="https://cdn.jsdelivr.net/npm/vega@6"></script>\n',
            ("report/test_site.py::test_pages_hold_no_inline_script_handler_style_or_outside_address",),
            where="scripts/loadstone/report/templates/base.html",
        ),
    ),
    "Pages stay small": (
        Mutant(
            "rows of charts are held once, as columns",
            "for name in names}}\n\n\ndef _columns_by",
            'for name in names}, "rows": rows}\n\n\ndef _columns_by',
            ("report/test_site.py::test_so_is_one_that_compares_as_many",),
        ),
    ),
    "Pages show text of the archive as text": (
        Mutant(
            "JSON in a page can end nothing",
            '.replace("<", "\\\\u003c")',
            "",
            ("report/test_site.py::test_json_in_a_page_can_end_nothing",),
        ),
        Mutant(
            "text on pages is escaped",
            "    autoescape=True,\n",
            "    autoescape=False,\n",
            ("report/test_progress.py::test_under_way",),
            where="scripts/loadstone/report/output.py",
        ),
        Mutant(
            "control characters are visible",
            'return _CONTROLS.sub(lambda found: f"\\\\u{ord(found[0]):04x}", value)',
            "return value",
            ("report/test_visible.py::test_no_file_of_the_site_has_one",),
        ),
        Mutant(
            "names of the archive are safe path parts",
            '    return re.sub(r"[^\\w:+\\-.~@ ]", lambda found:',
            '    return re.sub(r"[^\\w:+\\-.~@ {}]", lambda found:',
            ("archive/test_layout.py::test_any_folder_name_survives_encoding",),
        ),
        Mutant(
            "names with repetitions are wildcards for Snakemake",
            "    if not is_repeated(part):\n",
            "    if True:\n",
            ("archive/test_layout.py::test_snakemake_takes_names_that_end_with_repetitions",),
        ),
    ),
    "Pages begin with the finding": (
        Mutant(
            "the terminal has the variants in declared order",
            "styles_of(variants, [found], found.app,",
            "styles_of(variants, [], found.app,",
            ("report/test_order.py::test_in_the_terminal",),
        ),
        Mutant(
            "the headline is about a load below saturation",
            "key=lambda rate: (rate not in saturated, rate not in near, ",
            "key=lambda rate: (",
            ("report/test_findings.py::test_headline_is_about_the_greatest_load_below_saturation",),
        ),
    ),
    "They use the field's words": (
        Mutant(
            "valid runs have one name",
            "Latency of all valid runs by the time since",
            "Latency of all runs that count by the time since",
            ("docs/test_language.py::test_no_text_has_a_former_word",),
            where="scripts/loadstone/report/templates/campaign.html",
        ),
    ),
    "A variant has one colour on all pages": (
        Mutant(
            "colours follow the first campaigns of the whole archive, not those of a page",
            "            seen = undeclared_in(self.variants, seen, [self.snapshot.listings[key] for key in keys])\n",
            "            seen = first_seen(self.variants, [self.snapshot.listings[key] for key in keys])\n",
            ("workflow/test_looks.py::test_one_colour_on_all_pages_also_later",),
        ),
    ),
    "Publishing twice writes nothing": (
        Mutant(
            "a site that is there already is not published again",
            "    if current and current.site == digest and record.pending is None:\n",
            "    if False:\n",
            ("publish/site/test_publish.py::test_twice_without_change_writes_nothing",),
        ),
    ),
    "A dry run says what would be transferred, and transfers nothing": (
        Mutant(
            "a preview writes nothing",
            "    publish(reports, destination, keep=keep, log=lines.append, dry_run=True)\n",
            "    publish(reports, destination, keep=keep, log=lines.append)\n",
            ("workflow/test_transfers.py::test_a_preview_names_what_would_be_transferred_and_writes_nothing",),
        ),
    ),
}
