"""Trace dumps through the workflow: tables, pages, what is read again, what goes when a dump goes."""

import json
import re

import duckdb
import pytest
from support.checkout import Checkout
from support.rawfiles import compress, lines, write_cell
from support.spans import dump
from tables.test_traces import NAME, US, presidio


@pytest.fixture(scope="module")
def checkout(pristine, tmp_path_factory) -> Checkout:
    """A campaign of one run and a dump above it, reported."""
    checkout = Checkout(pristine, tmp_path_factory.mktemp("traces") / "checkout")
    write_cell(checkout.archive, {"1.results.json.zst": compress(lines([1000] * 100))}, runs=1)
    (checkout.archive / "demo/_trace_dumps").mkdir()
    content = dump(*(presidio(f"t{number}", US + number * 10**6) for number in range(5)))
    (checkout.archive / "demo/_trace_dumps" / NAME).write_bytes(compress(content))
    checkout.run("--cores", "2", "report")
    return checkout


def spans(checkout: Checkout) -> list[tuple[str | None, int]]:
    query = (
        f"SELECT dump, count(*) FROM '{checkout.path}/results/tables/spans/**/*.parquet' GROUP BY dump ORDER BY dump"
    )
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def test_the_page_answers_how_much_of_the_response_presidio_took(checkout) -> None:
    (page,) = (checkout.path / "reports/traces").glob("*.html")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text()))
    assert "In half of the traces with presidio it took at least 79.4 % of the response" in text
    assert "70.0 + 15.0 + 50.0 135 170 79.4 %" in text
    assert "<script>" not in page.read_text()
    index = (checkout.path / "reports/index.html").read_text()
    assert f'href="traces/{page.name}"' in index


def test_nothing_is_read_again_that_is_there(checkout) -> None:
    assert checkout.jobs("report") == {}
    (shares,) = checkout.path.glob("results/tables/trace_shares/*/*/*/*.parquet")
    aside = shares.rename(shares.with_name("aside"))
    assert checkout.jobs("report")["trace"] == 1
    aside.rename(shares)


def test_a_new_dump_is_read_alone_and_a_removed_one_leaves_nothing(checkout, tmp_path) -> None:
    twin = checkout.copy(tmp_path / "checkout")
    hostile = json.loads(dump(presidio("<script>alert(1)</script>")))
    hostile["data"][0]["processes"]["p1"]["serviceName"] = "<script>alert(2)</script>"
    second = twin.archive / "demo/_trace_dumps/traces-1714713825594.json"
    second.write_text(json.dumps(hostile))
    jobs = twin.jobs("report")
    assert (jobs["trace"], jobs["trace_page"]) == (1, 1)
    assert not {"convert", "analyse", "campaign_page"} & set(jobs)
    twin.run("--cores", "2", "report")
    assert [count for _, count in spans(twin)] == [35, 7]
    pages = list((twin.path / "reports/traces").glob("*.html"))
    assert len(pages) == 2
    assert not any("<script>" in page.read_text() for page in pages)
    second.unlink()
    twin.run("--cores", "2", "report")
    assert [count for _, count in spans(twin)] == [35]
    assert len(list((twin.path / "reports/traces").glob("*.html"))) == 1
