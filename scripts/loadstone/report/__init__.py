"""The static site: a start page, a page per campaign, comparison and variant, and what their charts load.

In: tables, and what people declare about campaigns. Out: pages with their scripts and data, and figures for papers.

Each page is written by ``build_<page>`` in its own module, and each file appears complete or not at all, the start page
last: ``campaigns/<slug>.html`` with the data that it loads when a rate is chosen (``campaigns/<slug>/<rate>.js``),
``comparisons/<id>.html``, both with the checksums of their inputs (``….sha256``) and an RO-Crate
(``…-ro-crate-metadata.json``; that of the site is ``ro-crate-metadata.json``), ``variants/<slug>.html``,
``traces/<slug>.html``, the pages over all of these (``campaigns.html``, ``comparisons.html``, ``variants.html``,
``quality.html``, ``methods.html``, ``index.html``) and ``assets/``. Everything works from a file and from any static
server. ``progress.html`` is written during a sweep.

Decisions that several modules keep together:

- A page loads nothing but the site's own files. It has no script or style of its own and no ``eval``, so Vega runs its
  interpreter; the data of a rate are a script, because a page that was opened from a file may not read files.
- Every page links to every page, so all exist: ``progress.html`` says that there is no sweep until there was one.
- What is known of runs is part of the identity of a rate's data file, like the rows of ``runs``. Nothing depends on
  file times.
- Colours are ``light-dark()`` variables, in charts too, so that a switch of the look redraws nothing.
- Vega gives a picture of panels no width, so panels have a size of their own: the page draws them again when it
  becomes wider, and a figure is drawn twice to learn the size of its axes.
- Every layer of a forest plot is over all rows, because Vega keeps the order of rows only where all layers have the
  same data. What a row does not have is null and is not drawn.
- Beyond its saturation point a latency grows as long as the attack lasts, so such rows do not set the axis of shifts
  and layers; far outside, a row has a number and no point. Ratios have a logarithmic axis and show all.
- Texts of tables quote canonical names of variants, and pages put labels in their place: a name without quotes could be
  any word.
- An old page is removed only if this project wrote it: folders are the user's.
"""
