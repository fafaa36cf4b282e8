"""What holds at every destination: whole, only what changed, nothing twice, nothing of others."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from loadstone.errors import LoadstoneError
from loadstone.publish.site import publications
from loadstone.publish.site.publish import preview, publish
from support.sites import FolderReader, destination, files_of, led_to, read_as_reader, write_site

NOW = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)


def put(reports, reader, **options) -> tuple[bool, list[str]]:
    said: list[str] = []
    return publish(reports, destination(reader), log=said.append, **options), said


def test_a_reader_finds_the_site_byte_by_byte(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    assert put(reports, reader, now=NOW)[0]
    files = reader.files()
    assert read_as_reader(files) == files_of(reports)
    folder = led_to(files, "campaigns/demo_1.html")
    assert folder.startswith("releases/2026-11-21T22-30-00Z-")
    listed = f'href="{folder.removeprefix("releases/")}/index.html">21 November 2026, 22:30 UTC'
    assert listed.encode() in files["releases/index.html"]


def test_twice_without_change_writes_nothing(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    put(reports, reader)
    before = reader.state()
    done, said = put(reports, reader)
    assert not done and "already has this site" in said[0]
    assert reader.state() == before


def test_only_what_changed_is_transferred_and_what_was_stays_by_its_date(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    put(reports, reader, now=NOW)
    first = files_of(reports)
    (reports / "campaigns/demo_1/2.js").write_text('loadstone.receive("2",{"new":1});')
    (reports / "campaigns/demo_2.html").unlink()
    done, said = put(reports, reader, now=NOW + timedelta(days=40))
    assert done and "2 files to transfer" in said[1]  # and the list of its files
    files = reader.files()
    assert read_as_reader(files) == files_of(reports)
    was = "releases/2026-11-21T22-30-00Z-"
    (old,) = {name[: len(was) + 8] + "/" for name in files if name.startswith(was)}
    kept = {name.removeprefix(old): content for name, content in files.items() if name.startswith(old)}
    assert {name: kept[name] for name in first} == first
    # An address that was once given out still leads somewhere.
    assert led_to(files, "campaigns/demo_2.html") == old.rstrip("/")
    assert files["releases/index.html"].count(b'scope="row"') == 2


def test_a_dry_run_says_what_would_be_transferred_and_changes_nothing(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    before = reader.state()
    lines = preview(reports, destination(reader))
    assert any("19 files to transfer" in line for line in lines), lines
    assert "    campaigns/demo_1/2.js" in lines
    assert reader.state() == before
    put(reports, reader)
    assert "already has this site" in preview(reports, destination(reader))[0]
    (reports / "index.html").write_text("Made by Loadstone anew")
    before = reader.state()
    lines = preview(reports, destination(reader))
    assert any("2 files to transfer" in line for line in lines), lines
    assert reader.state() == before


def test_what_is_not_the_sites_is_not_published(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    site = files_of(reports)
    for name in ("README.md", "notes.html", ".secret.html", "campaigns/.x.js", "campaigns/mine.html", "own/a.js"):
        (reports / name).parent.mkdir(exist_ok=True)
        (reports / name).write_text("the user's own")
    (tmp_path / "outside.html").write_text("Made by Loadstone")
    (reports / "campaigns/link.html").symlink_to(tmp_path / "outside.html")
    put(reports, reader)
    assert read_as_reader(reader.files()) == site


def test_a_site_that_has_lost_a_file_is_not_published(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    put(reports, reader)
    published = reader.files()
    (reports / "methods.html").write_text('<script src="assets/gone.js"></script><footer>Made by Loadstone 1.</footer>')
    with pytest.raises(LoadstoneError, match=r"assets/gone\.js \(used by methods\.html\)"):
        put(reports, reader)
    assert reader.files() == published


def test_another_s_files_are_refused_and_left_alone(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    reader.put("thesis.html", b"not ours")
    before = reader.state()
    with pytest.raises(LoadstoneError, match="holds files that Loadstone did not publish"):
        put(reports, reader)
    assert reader.state() == before


def test_another_s_files_beside_ours_stay(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    put(reports, reader)
    reader.put("CNAME", b"results.example\n")
    reader.put("campaigns/mine.html", b"not ours")
    write_site(reports, says="second")
    assert put(reports, reader)[0]
    assert reader.files()["CNAME"] == b"results.example\n"
    assert reader.files()["campaigns/mine.html"] == b"not ours"
    write_site(reports, says="third")
    (reports / "campaigns/mine.html").write_text("Made by Loadstone: a page of that name")
    before = reader.state()
    with pytest.raises(LoadstoneError, match=r"has a file campaigns/mine.html that Loadstone did not publish"):
        put(reports, reader)
    assert reader.state() == before


def test_of_all_publications_the_last_few_stay_if_so_declared(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    for day, says in enumerate(("first", "second", "third")):
        write_site(reports, says=says, campaigns=3 - day)
        if day:
            (reports / f"campaigns/demo_{3 - day}.html").unlink()
        put(reports, reader, keep=2, now=NOW + timedelta(days=day))
    files = reader.files()
    assert {name.split("/")[1][:10] for name in files if name.startswith("releases/2")} == {"2026-11-22", "2026-11-23"}
    assert "campaigns/demo_2.html" not in files  # led only to what is gone
    assert led_to(files, "campaigns/demo_1.html").startswith("releases/2026-11-22T")


def test_a_mark_that_says_nothing_known_is_no_leave_to_write(reader, tmp_path) -> None:
    reports = tmp_path / "reports"
    write_site(reports, says="first")
    hostile = publications.write_record(publications.PublicationRecord(removing=("../..",)))
    climbing = publications.write_record(publications.PublicationRecord(ended=("../../a.html",)))
    for content in (b"{", b'{"made_by":"Loadstone","format":2}', b"[]", hostile, climbing):
        reader.put("loadstone-publication.json", content)
        before = reader.state()
        with pytest.raises(LoadstoneError, match="nothing was changed there"):
            put(reports, reader)
        assert reader.state() == before


def test_two_at_once_leave_one_whole_site(reader, tmp_path) -> None:
    outcomes = []

    def work(name: str) -> None:
        write_site(tmp_path / name, says=name)
        try:
            outcomes.append(put(tmp_path / name, reader)[0])
        except LoadstoneError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert True in outcomes
    assert all(
        outcome is True or "try again" in outcome.lower() or "wait until it ends" in outcome for outcome in outcomes
    ), outcomes
    assert read_as_reader(reader.files()) in (files_of(tmp_path / "one"), files_of(tmp_path / "two"))


TAGS = """<!doctype html><html lang="en"><head><title>T</title>
<meta name="viewport" content="width=device-width">
<meta property="og:title" content="A &amp; &lt;b&gt; &#34;c&#34;">
<meta property="og:image" content="demo_0.png">
<meta name="twitter:card" content="summary_large_image">
</head><footer>Made by Loadstone 1.</footer></html>
"""


@pytest.mark.parametrize(
    ("address", "before"),
    [
        (None, "../"),
        ("https://example.org/mesh", "https://example.org/mesh/"),
        ('http://x/"><b>/', "http://x/%22%3E%3Cb%3E/"),
    ],
)
def test_the_address_of_a_page_shows_the_same_preview_as_the_page(tmp_path, address, before) -> None:
    """Who previews a link reads the small document at a page's address, and follows it nowhere."""
    reports, reader = tmp_path / "reports", FolderReader(tmp_path)
    write_site(reports, says="first")
    (reports / "campaigns/demo_0.html").write_text(TAGS)
    (reports / "campaigns/demo_0.png").write_bytes(b"\x89PNG Made by Loadstone")
    (reports / "index.png").write_bytes(b"\x89PNG Made by Loadstone")
    put(reports, reader, now=NOW, address=address)
    files = reader.files()
    head = files["campaigns/demo_0.html"].decode()
    folder = led_to(files, "campaigns/demo_0.html")
    assert f'<meta property="og:image" content="{before}{folder}/campaigns/demo_0.png">\n' in head
    assert '<meta property="og:title" content="A &amp; &lt;b&gt; &#34;c&#34;">\n' in head and "viewport" not in head
    assert f"{folder}/campaigns/demo_0.png" in files and f"{folder}/index.png" in files
    assert b"og:" not in files["campaigns/demo_1.html"]


def test_a_picture_that_is_not_the_site_s_is_not_published(tmp_path) -> None:
    reports, reader = tmp_path / "reports", FolderReader(tmp_path)
    write_site(reports, says="first")
    (reports / "index.png").write_bytes(b"\x89PNG holiday")
    put(reports, reader)
    assert not any(name.endswith(".png") for name in reader.files())
