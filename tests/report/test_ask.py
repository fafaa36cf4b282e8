"""The page on which readers ask the tables in SQL, with a real DuckDB in a real Chromium."""

from urllib.parse import parse_qs, urlsplit

import pytest
from loadstone.report import query_page
from loadstone.tables.schema import TABLES
from report.asking import Asking, Served, examples
from report.conftest import ENDING, POLICY, SCRIPT
from support.site import write_assets

pytest_plugins = ["report.asked_site"]

ELSEWHERE = (
    "FROM '{address}/x.csv'",
    "FROM read_csv('{address}/x.csv')",
    "FROM read_text('{address}/x.csv')",
    "FROM read_parquet('{address}/x.parquet')",
    "FROM read_json('{address}/x.json')",
    "FROM glob('{address}/*')",
    "ATTACH '{address}/x.duckdb'",
    "COPY cells TO '{address}/x.csv'",
    "INSTALL httpfs FROM '{address}'",
    "FORCE INSTALL spatial FROM '{address}'",
    "LOAD httpfs",
    "LOAD '{address}/x.duckdb_extension.wasm'",
    "SELECT '{{}}'::JSON",
    "SET custom_extension_repository = '{address}'",
    "SET enable_external_access = true",
    "SET autoload_known_extensions = true",
    "FROM '../index.html'",
    "FROM 'opfs://x.csv'",
)


@pytest.fixture(scope="session")
def outside(tmp_path_factory):
    """A server that nobody should ask for anything. What it has would be an answer."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "x.csv").write_text("stolen\n1\n")
    with Served(folder) as running:
        yield running


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
    yield Asking(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def opened(asked, browser):
    """The page, opened from a file, with one DuckDB for all tests that leave it as it was."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
    page = Asking(context.new_page())
    page.open((asked[0] / "ask.html").as_uri())
    yield page
    context.close()


def expected(connection, query: str) -> list[list[str]]:
    """What DuckDB in Python says, as text."""
    rows = connection.sql(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (\n{query}\n)").fetchall()
    return [list(row) for row in rows]


@pytest.mark.parametrize("served", [False, True], ids=["file", "server"])
def test_the_first_question_loads_duckdb_from_the_site_alone(asked, page, served):
    with Served(asked[0]) as server:
        base = server.address if served else asked[0].as_uri()
        page.open(f"{base}/ask.html")
        assert not any("duckdb" in address or "/ask/" in address for address in page.requests)
        run = page.page.locator("#run")
        assert run.inner_text().startswith("Load DuckDB (") and run.inner_text().endswith(" MB) and run")
        run.click()
        assert len(page.answer()) == 4
        assert run.inner_text() == "Run" and not page.page.locator("#loading").is_visible()
        loaded = list(page.requests)
        assert page.ask("SELECT 1") == [["1"]]
        assert page.requests == loaded
        assert all(address.startswith((base, "blob:", "data:,")) for address in loaded)
        assert page.complaints == []


def test_every_example_has_an_answer_and_it_is_duckdbs(asked, opened, connection):
    buttons = opened.page.locator("[data-example]").all()
    shown = [button.get_attribute("data-example") for button in buttons]
    assert len(shown) >= 7 and set(shown) <= set(examples())
    assert not any(button.inner_text() == button.get_attribute("data-example") for button in buttons)
    opened.page.locator("#run").click()
    opened.answer()
    for query, button in zip(shown, buttons, strict=True):
        button.click()
        rows = opened.answer()
        assert rows == expected(connection, query) and rows, query
        assert opened.page.locator("#sql").input_value() == query
    assert opened.complaints == []


def test_every_table_is_whole(asked, opened, connection):
    for name in query_page.PUBLISHED:
        if name in TABLES:
            query = f"FROM {name} ORDER BY ALL"
            assert opened.ask(query) == expected(connection, query), name
            assert opened.columns() == TABLES[name].names
    assert opened.complaints == []


def test_values_of_every_type_are_readable(opened, connection):
    queries = [
        "SELECT INTERVAL 3 DAYS, INTERVAL '1 month 2 hours', INTERVAL 90 MINUTES + INTERVAL 5 MILLISECONDS",
        "SELECT sum(n_requests), 9223372036854775807 + 1::HUGEINT, -1::TINYINT, 2 ** 60, 2::UBIGINT FROM cells",
        "SELECT 1.50::DECIMAL(9, 2), 0.1 + 0.2::DOUBLE, 1e300, 'nan'::DOUBLE, '-inf'::DOUBLE, 1/3::FLOAT",
        "SELECT TIMESTAMP '2026-01-02 03:04:05.678901', DATE '2026-01-02', TIME '03:04:05.5', NULL",
        "SELECT max(failed_at), max(failed_at) - min(started_at) FROM failures, runs",
        "SELECT MAP {'a': 1, 'b': NULL}, [1, 2, NULL], [['x']], {'k': 'v', 'n': [1]}, []",
        "SELECT 'a''b', '', ' ', 'ü €', 'x' || chr(10) || 'y', '\\x41'::BLOB, true, uuid_extract_version(uuid())",
        "SELECT '3 days'::INTERVAL, 'x;--' -- a comment; behind it",
        "SELECT INTERVAL 3 DAYS; -- and so on",
        "WITH a AS (SELECT range AS n FROM range(3)) SELECT * FROM a ORDER BY n DESC;",
        "PIVOT cells ON variant USING round(avg(p50_ns)) GROUP BY rate ORDER BY rate",
        "DESCRIBE cells",
        "VALUES (1, 'a'), (2, NULL)",
    ]
    for query in queries:
        rows = opened.ask(query)
        assert rows == expected(connection, query.removesuffix("; -- and so on").removesuffix(";")), query
    assert "PROJECTION" in opened.ask("EXPLAIN SELECT rate + 1 FROM cells")[0][1]
    assert opened.complaints == []


def test_what_is_wrong_is_said_in_duckdbs_words(opened):
    said = opened.ask("SELECT\n    nope\nFROM cells")
    assert said.startswith('Binder Error: Referenced column "nope" not found') and "LINE 2:     nope\n" in said
    assert opened.ask("SELCT 1").startswith('Parser Error: syntax error at or near "SELCT"')
    assert "LINE 1: SELECT 'a'::INTEGER" in opened.ask("SELECT 'a'::INTEGER")
    assert "Table with name requests does not exist" in opened.ask("FROM requests")
    assert "multiple statements" in opened.ask("SELECT 1; SELECT INTERVAL 1 DAY")
    assert opened.ask("").startswith("Invalid Input Error")
    assert not opened.page.locator("#result").is_visible()
    assert opened.ask("SELECT 1") == [["1"]]
    assert not opened.page.locator("#error").is_visible()
    assert opened.complaints == []


def test_nothing_outside_can_be_reached(asked, page, outside):
    """Not by a query, and not by code in the page or in the worker either."""
    with Served(asked[0]) as server:
        page.open(f"{server.address}/ask.html")
        assert page.ask("SELECT 1") == [["1"]]
        allowed = len(page.requests)
        for query in ELSEWHERE:
            said = page.ask(query.format(address=outside.address))
            assert isinstance(said, str) and " Error: " in said, (query, said)
            if "extension" in said:
                assert "it loads no extensions" in said
        assert len(page.requests) == allowed and page.complaints == []
        (worker,) = page.page.workers
        for name in ("fetch", "XMLHttpRequest", "WebSocket", "importScripts"):
            assert worker.evaluate(f"typeof {name}") == "undefined"
        tried = f"WorkerGlobalScope.prototype.fetch.call(self, '{outside.address}/x.csv')"
        assert worker.evaluate(f"{tried}.then(() => 'fetched', () => 'refused')") == "refused"
        tried = f"fetch('{outside.address}/x.csv')"
        assert page.page.evaluate(f"{tried}.then(() => 'fetched', () => 'refused')") == "refused"
        assert outside.asked == []


def test_hostile_texts_are_texts(asked, opened):
    rows = opened.ask("SELECT DISTINCT variant FROM cells WHERE app = 'shop' ORDER BY 1")
    assert {SCRIPT, ENDING} < {row[0] for row in rows}
    image = '<img src="x" onerror="alert(1)">'
    assert opened.ask(f"SELECT '{SCRIPT}' AS '{image}', error('{image}')").endswith(f"Error: {image}")
    assert opened.ask(f"SELECT '{SCRIPT}' AS '{image}'") == [[SCRIPT]] and opened.columns() == [image]
    assert opened.page.locator("#result script, #result img, #error img").count() == 0
    rows = opened.ask("SELECT error, variant, evidence[1], evidence[3] FROM failures")
    assert rows == [[f"a\n\tb {ENDING}", '=cmd()"\r\n,x', "", SCRIPT]]
    assert opened.complaints == []
    assert "Results of &lt;us&gt; &amp; them" in (asked[0] / "ask.html").read_text()


def test_the_saved_file_holds_the_whole_answer(opened, connection):
    query = "FROM failures, range(3) AS many(nth_time) ORDER BY nth_time"
    opened.ask(query)
    header, *rows = opened.saved()
    relation = connection.sql(query)
    assert header == relation.columns
    assert rows == [[value or "" for value in row] for row in expected(connection, query)]
    shown = opened.ask("SELECT range AS n, NULL AS nothing, '' AS empty FROM range(2500)")
    assert len(shown) == query_page.SHOWN
    assert "1,000 rows: these are the first" in opened.page.locator("#status").inner_text()
    assert opened.saved() == [["n", "nothing", "empty"], *([str(n), "", ""] for n in range(2500))]
    assert "Saved 2,500 rows" in opened.page.locator("#status").inner_text()
    assert opened.complaints == []


def test_the_address_keeps_the_question_and_runs_nothing_by_itself(asked, opened, browser):
    query = "SELECT '&#?=%+ü' AS x -- a\n"
    assert opened.ask(query) == [["&#?=%+ü"]]
    address = opened.page.url
    assert parse_qs(urlsplit(address).fragment) == {"sql": [query]}
    context = browser.new_context()
    again = Asking(context.new_page())
    again.open(address)
    assert again.page.locator("#sql").input_value() == query
    assert again.page.locator("#status").inner_text() == "" and not again.page.workers
    assert not any("duckdb" in asked_for for asked_for in again.requests)
    again.page.locator("#run").click()
    assert again.answer() == [["&#?=%+ü"]]
    context.close()


def test_a_question_without_end_is_stopped_and_the_next_one_answered(asked, page):
    page.open((asked[0] / "ask.html").as_uri())
    assert page.ask("SELECT 1") == [["1"]]
    loaded = [address for address in page.requests if address.startswith("file:")]
    page.page.locator("#sql").fill("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range = -b.range")
    page.page.locator("#run").click()
    page.page.get_by_role("button", name="Stop").click()
    assert page.answer().startswith("Stopped.")
    assert page.ask("SELECT 2") == [["2"]]
    assert [address for address in page.requests if address.startswith("file:")] == loaded
    assert page.complaints == []


def test_what_a_reader_changes_is_gone_with_the_page(asked, page):
    page.open((asked[0] / "ask.html").as_uri())
    assert page.ask("CREATE TABLE mine AS FROM cells") == [["10"]]
    page.ask("DELETE FROM cells")
    assert page.ask("SELECT count(*) FROM mine, (SELECT count(*) AS n FROM cells) WHERE n = 0") == [["10"]]
    page.page.reload()
    assert page.ask("SELECT count(*) FROM cells") == [["10"]]
    assert "does not exist" in page.ask("FROM mine")


def test_keys_alone_suffice(asked, page):
    page.open((asked[0] / "ask.html").as_uri())
    for _ in range(30):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("document.activeElement.id") == "sql":
            break
    page.page.keyboard.press("Control+A")
    page.page.keyboard.type("SELECT 6 * 7 AS answer")
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.id") == "run"
    page.page.keyboard.press("Enter")
    assert page.answer() == [["42"]]
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.id") in ("save", "result")


def test_for_everybody_in_light_and_dark_on_any_screen(asked, browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # Else it loads the style by itself to look into it, which the page's policy forbids.
    options = {"resultTypes": ["violations"], "preload": False}
    context = browser.new_context()
    page = Asking(context.new_page())
    page.open((asked[0] / "ask.html").as_uri())
    page.page.locator("#tables ~ details").first.evaluate("(element) => { element.open = true; }")
    for query in (None, "FROM cells", "SELECT nope"):
        if query:
            page.ask(query)
        for scheme, width in (("light", 1400), ("dark", 400)):
            page.page.emulate_media(color_scheme=scheme)
            page.page.set_viewport_size({"width": width, "height": 900})
            found = axe.run(page.page, options=options)
            assert found.violations_count == 0, found.generate_report()
            assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.complaints == []
    context.close()


def test_a_server_that_forbids_it_is_named(asked, page):
    with Served(asked[0], {"Content-Security-Policy": POLICY}) as server:
        page.open(f"{server.address}/ask.html")
        said = page.ask("SELECT 1")
    assert said.startswith("DuckDB does not start here") and "worker-src blob:" in said


def test_a_site_that_lacks_a_file_is_named(asked, page, tmp_path):
    folder = tmp_path / "copied"
    (folder / "assets").mkdir(parents=True)
    for name in ("ask.html", "assets/ask.js", "assets/ask.css", "assets/site.css"):
        (folder / name).write_bytes((asked[0] / name).read_bytes())
    page.open((folder / "ask.html").as_uri())
    assert "could not be loaded: is this site complete?" in page.ask("SELECT 1")


def test_without_duckdb_the_page_says_so_and_shows_what_there_is(asked, page, tmp_path):
    _, tables, campaigns = asked
    write_assets(tmp_path)
    made = query_page.build_query_page(campaigns, tables, tmp_path, None, {})
    assert not (tmp_path / "assets/duckdb").exists()
    page.open(made.as_uri())
    assert "make ask" in page.page.locator(".notice").inner_text()
    assert page.page.locator("main textarea, main button").count() == 0
    assert "SELECT" in page.page.locator(".examples code").first.text_content()
    assert page.complaints == []
