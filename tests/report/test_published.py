"""A published site in Chromium: its addresses lead on, also where all but the site's files is forbidden."""

import pytest
from loadstone.publish.site import publish
from loadstone.publish.site.destinations import Folder
from report.asking import Served
from report.conftest import POLICY


@pytest.fixture(scope="module")
def published(made_site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "www"
    publish.publish(made_site.reports, Folder(folder), keep=None, log=lambda _: None)
    return folder


@pytest.mark.parametrize("headers", [{}, {"Content-Security-Policy": POLICY}], ids=["any server", "a strict one"])
def test_an_address_leads_to_the_newest_publication_with_what_it_chose(published, made_site, watched, headers) -> None:
    page = made_site.page("good").relative_to(made_site.reports).as_posix()
    with Served(published, headers) as server:
        for name in ("index.html", page):
            watched.page.goto(f"{server.address}/{name}#statistic=p90")
            watched.page.wait_for_url(f"{server.address}/releases/*/{name}#statistic=p90")
        watched.settle()
    assert watched.complaints == []


def test_so_it_does_from_a_file(published, watched) -> None:
    watched.page.goto(f"{published.as_uri()}/index.html#a")
    watched.page.wait_for_url("**/releases/*/index.html#a")
    assert watched.complaints == []


def test_the_list_of_publications_may_load_nothing(published, watched) -> None:
    watched.page.goto(f"{published.as_uri()}/releases/index.html")
    assert watched.page.evaluate("getComputedStyle(document.body).maxWidth") == "720px"
    for page in (published / "releases/index.html", published / "index.html"):
        text = page.read_text()
        assert "default-src 'none'" in text and "<script>" not in text
    assert watched.complaints == []
