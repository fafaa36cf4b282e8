"""The files of one run -> its rows of every table. One file is used; what the others report is compared with it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, timezone
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loadstone.archive import FOREIGN, MAIN_STREAM, RawFile, metadata, parse_timestamp, run_records
from loadstone.archive.metadata import Metadata
from loadstone.archive.run_records import RunRecord
from loadstone.config import redact
from loadstone.readers import FORMATS, RANKS, Format, Problems, Reader, Report, load_generators
from loadstone.readers.base import Figure, json_text
from loadstone.readers.stream import read_object
from loadstone.tables import contradictions, exclusion, layout, schema
from loadstone.tables.cell import CellTables, Reading
from loadstone.tables.contradictions import Tally
from loadstone.tables.requests import TEST, WARMUP, bordering, complete, in_stages, last_phase

_PHASES = {"results": TEST, "warmups": WARMUP}
_ROWS = 100_000
_MOST_DIGITS = 9
_SUMMARY_COLUMNS = set(schema.TABLES["summaries"].names)
_OWN_REPORT = "summary.json"  # two runs with equal ones need not be copies
_NO_FORMAT = "is in a format that can't be read"


def read_run(reading: Reading, run: int, files: Sequence[RawFile], output: CellTables) -> None:
    """Read all files of a run into `output` and the cell's record: everything becomes rows or problems."""
    _RunReader(reading, run, files).read(output)


def describe(reading: Reading, run: int) -> dict[str, Any]:
    """The row of `facts` of a run of which no file was read."""
    return _RunReader(reading, run, []).description()


class _RunReader:
    def __init__(self, reading: Reading, run: int, files: Sequence[RawFile]) -> None:
        self.reading, self.run = reading, run
        self.files = sorted(files, key=_rank)
        self.key = reading.key | {"run": run}
        self.main: RawFile | None = None
        self.main_rows: int | None = None
        self.reports: dict[str, Report] = {}  # by the file's name, the preferred one of the main stream first
        self.measured: str | None = None  # the main stream's measured phase, as the tool calls it
        self.measured_rows = self.bordering = 0  # requests of that phase; those that may be of it or of another
        self.tally = Tally()
        self.record = RunRecord()

    def read(self, output: CellTables) -> None:
        for file in self.files:
            known = _format(file)
            if file.kind in ("summary", "resources") and not (known.reading(None) or known.samples):
                self._problem(file.name, _NO_FORMAT)
        faults = self._read_reports()
        for file, reader in self._choose():
            self._read_requests(file, reader, output)
        self._read_samples(output)
        for name, text in self._compare():
            faults[name].append(text)
        for name, texts in faults.items():
            is_only_source = not self.main_rows and name == self._preferred(MAIN_STREAM)
            for text in texts:
                self._fault(name, exclusion.REPORT_UNSOUND, unfit=is_only_source, detail=text)
        self._write_reports(output, faults)
        self._check_declared()
        self._read_run_record()
        self.reading.record.runs.append(self.description())

    def _problem(self, name: str, problem: str) -> None:
        self.reading.problem(self.run, name, problem)

    def _fault(self, name: str, code: str, *, unfit: bool = True, **values: str | None) -> None:
        self.reading.fault(self.run, name, code, unfit=unfit, **values)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _choose(self) -> list[tuple[RawFile, Reader]]:
        """One file per stream and phase."""
        best: dict[tuple[str, str], tuple[RawFile, Reader]] = {}
        for file in self.files:
            if file.kind not in _PHASES:
                continue
            reader = _format(file).requests
            if reader is None:
                self._problem(file.name, _NO_FORMAT)
            elif (file.stream, file.kind) in best:
                self._problem(file.name, f"is not used: {best[file.stream, file.kind][0].name} holds the same")
            else:
                best[file.stream, file.kind] = file, reader
        self.main, _ = best.get((MAIN_STREAM, "results"), (None, None))
        return [best[key] for key in sorted(best)]

    def _read_requests(self, file: RawFile, reader: Reader, output: CellTables) -> None:
        problems, rows, measured_rows = Problems(), 0, 0
        described = self.reading.metadata
        constant = self.key | {"stream": file.stream, "phase": _PHASES[file.kind]}
        ends = described.mode == "serial" and _version(described) < float(metadata.VERSION)
        measured: str | None = None
        for read in reader(self.reading.path(file), problems):
            batch = in_stages(read, described.stages) if file.kind == "warmups" else read
            if rows == 0 and "phase" in batch.schema.names:
                measured = self._measured(file, reader)
                if file is self.main:
                    self.measured = measured
            completed = complete(batch, constant, measured, stamps_the_end=ends)
            output.add("requests", completed)
            rows += completed.num_rows
            is_measured = pc.equal(completed.column("phase"), constant["phase"])
            measured_rows += completed.num_rows if measured is None else (pc.sum(is_measured).as_py() or 0)
            if file is self.main:
                self.tally.add(
                    completed.filter(is_measured) if described.measured and measured is not None else completed
                )
                self.bordering += bordering(batch, measured)
        if rows == 0 and not problems.texts() and file.name not in self.reports:
            problems.truncated = "it holds no record"
        for text in problems.texts():
            self._fault(file.name, exclusion.UNREADABLE, unfit=file.kind == "results", detail=text)
        if file is self.main:
            # What we collect reports the measured stage alone, other tools all that they sent.
            self.main_rows = measured_rows if described.measured else rows
            self.measured_rows = measured_rows
            if rows and not measured_rows:
                self._fault(file.name, exclusion.NO_SUCH_PHASE, expected=measured)

    def _measured(self, file: RawFile, reader: Reader) -> str | None:
        """The tool's own name of the measured phase: as the metadata say, else the last one."""
        if named := self.reading.metadata.measured_phase:
            return named
        report = self.reports.get(file.name)
        if report is not None and report.phases:
            return report.phases[-1].name
        return last_phase(reader, self.reading.path(file))

    # --- reports of tools ---------------------------------------------------------------------------------------------

    def _read_reports(self) -> dict[str, list[str]]:
        """Read every report; what is wrong with each, by the file's name."""
        faults = {}
        for file in self.files:
            known = _format(file)
            read = known.reading(self.reading.metadata.unit)
            if read is None:
                continue
            problems = Problems()
            report = read(self.reading.path(file), problems)
            # What is wrong with a file of requests too is named when these are read.
            faults[file.name] = [] if known.requests else problems.texts()
            if report is not None:
                self.reports[file.name] = report
                faults[file.name] += contradictions.impossible(report.summary, known.resolution_ns)
        return faults

    def _preferred(self, stream: str) -> str | None:
        """The file whose summary of a stream counts."""
        names = (file.name for file in self.files if file.stream == stream)
        return next((name for name in names if name in self.reports and self.reports[name].summary), None)

    def _write_reports(self, output: CellTables, faults: Mapping[str, list[str]]) -> None:
        for file in self.files:
            report = self.reports.get(file.name)
            if report is None:
                continue
            of = {"stream": file.stream, "source": self.reading.source(file.name)}
            if report.summary:
                known = {name: value for name, value in report.summary.items() if name in _SUMMARY_COLUMNS}
                chosen = {"preferred": file.name == self._preferred(file.stream), "problems": faults[file.name]}
                row = self.key | known | of | chosen
                if self._batch(file, "summaries", layout.arrow_rows([row], schema.TABLES["summaries"])) is not None:
                    self.reading.record.summaries.append(row)
            figures = (self.key | {"source": of["source"]} | _figure(figure) for figure in report.figures)
            bins = (self.key | of | vars(each) for each in report.histogram)
            samples = (self.key | vars(sample) for sample in report.samples)
            for table, rows in (("figures", figures), ("histograms", bins), ("resources", samples)):
                for some in _chunks(rows):
                    if (batch := self._batch(file, table, some)) is not None:
                        output.add(table, batch)

    def _batch(self, file: RawFile, table: str, rows: list[dict[str, Any]]) -> pa.RecordBatch | None:
        """Figures of a file as rows of a table. None, and a problem, when it can't hold them (those beyond 64 bits)."""
        try:
            return pa.RecordBatch.from_pylist(rows, schema.TABLES[table])
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            self._fault(file.name, exclusion.FIGURE_TOO_LARGE, unfit=not self.main_rows)
            return None

    def _read_samples(self, output: CellTables) -> None:
        for file in self.files:
            read = _format(file).samples
            if read is None:
                continue
            problems = Problems()
            samples = read(self.reading.path(file), problems, self._zone())
            for some in _chunks(self.key | vars(sample) for sample in samples):
                output.add("resources", pa.RecordBatch.from_pylist(some, schema.TABLES["resources"]))
            for text in problems.texts():
                self._problem(file.name, text)

    def _zone(self) -> timezone | None:
        instant = parse_timestamp(f"2000-01-01T00:00:00{self.reading.metadata.zone or ''}")
        offset = None if instant is None else instant.utcoffset()
        return None if offset is None else timezone(offset)

    def _compare(self) -> Iterator[tuple[str, str]]:
        """Reports of the main stream that contradict all requests, or one another: the file's name, and how."""
        counts = {name: report.summary.get("requests") for name, report in self._main_reports().items()}
        known = [(name, count) for name, count in counts.items() if count is not None]
        if self.main_rows:
            known.insert(0, ("the results contain", self.main_rows))
        for name, count in known[1:]:
            if count != known[0][1]:
                yield name, f"counts {count} requests, {known[0][0]} {known[0][1]}"
        if not self.main_rows:
            return
        main = self.main.format if self.main else ""
        for file in (file for file in self.files if file.name in self._main_reports()):
            step_ns = max(FORMATS[name].resolution_ns or 0 for name in {main or file.format, file.format})
            for text in contradictions.against_rows(self.reports[file.name], self.tally, FORMATS[file.format], step_ns):
                yield file.name, text

    def _check_declared(self) -> None:
        """Compare the load that the primary file reports with the declared one."""
        name = self.main.name if self.main else self._preferred(MAIN_STREAM)
        report = self.reports.get(name or "")
        described, texts = self.reading.metadata, list[str]()
        if (lasted_s := self._lasted_s()) is not None:
            texts += contradictions.lasted(described, lasted_s)
        elif self.main_rows and report is not None and report.phases:
            possible = self.measured_rows + self.bordering
            texts += contradictions.of_phase(described, report, self.measured, self.measured_rows, possible)
        for text in texts:
            self._fault(name or "", exclusion.LOAD_DIFFERS, detail=text)

    def _lasted_s(self) -> float | None:
        """How long an attack of vegeta took of which there is only an imported report."""
        summary = self._file(self._preferred(MAIN_STREAM))
        if self.main is not None or summary is None or not self._is_foreign(summary):
            return None
        described = self.reading.metadata
        open_load = described.load_model == "open" and described.measured is None
        if not open_load or (FORMATS[summary.format].generator or described.generator) != "vegeta":
            return None
        return contradictions.number(self.reports[summary.name].facts.get("duration_s"))

    def _is_foreign(self, file: RawFile) -> bool:
        """Whether it is a file that Loadstone did not collect."""
        return file.format in FOREIGN or bool(self.reading.metadata.imported)

    def _main_reports(self) -> dict[str, Report]:
        main = [file.name for file in self.files if file.stream == MAIN_STREAM]
        return {name: self.reports[name] for name in main if name in self.reports}

    def _read_run_record(self) -> None:
        for file in self.files:
            if file.kind != "run":
                continue
            problems = Problems()
            content = read_object(self.reading.path(file), problems, "run record")
            if content is not None:
                self.record = run_records.parse(content)
                incidents = self.record.incidents
                self.reading.record.incidents += [self.key | redact.texts(vars(incident)) for incident in incidents]
                doubtful = exclusion.target_problem(incidents)
                for text in [*([f"reports {doubtful}"] if doubtful else []), *exclusion.unknown(incidents)]:
                    self._problem(file.name, text)
            for text in problems.texts():
                self._problem(file.name, text)

    # --- the run ------------------------------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """The run's row of `facts`, without the problems."""
        described, facts = self.reading.metadata, self._facts()
        generator, load_model, inferred = self._generator(facts)
        places = {sender.place for sender in self.record.senders}
        processes = 0 if None in places else len(places)
        summary = self._preferred(MAIN_STREAM)
        evidence = self._evidence()
        # Requests that may be of the measured phase or of the one before count in neither.
        paced = load_model in metadata.PACED or described.measured is not None
        cannot_tell = not paced or facts.get("across_phases", "0") != "0"
        if self.main is None and not (summary and any(map(self._is_foreign, self.files))):
            # What the tool reported of such a run can be compared with what it reported of others.
            self._fault("", exclusion.NO_RESULTS, unfit=summary is None)
        primary = self.main if self.main and (evidence == "raw" or summary is None) else self._file(summary)
        return self.key | {
            "load_model": load_model,
            "generator": generator,
            "metadata_version": described.version,
            "evidence": evidence,
            "duration_s": described.duration_s,
            "warmup_rate": described.warmup_rate,
            "replicas": described.replicas,
            "labels": described.labels,
            "inferred": inferred,
            "resolution_ns": self._resolution_ns(primary, generator),
            "clock_resolution_ns": contradictions.number(facts.get("clock_resolution_ns")),
            "users": self._users(facts, load_model),
            "generator_cpus": self.record.generator_cpus,
            "load_1min": self.record.load_1min,
            "target_problem": exclusion.target_problem(self.record.incidents),
            "expected_requests": None if cannot_tell else self._expected_requests(),
            "started_at": self._started_at(facts),
            "description": self.record.description,
            "timeout_s": metadata.parse_duration(described.timeout),
            "generators": described.generators,
            "sent_by": described.sent_by if generator == described.generator else generator,
            "sent_alike": described.sent_alike(processes) if generator == described.generator else generator,
            "part": described.part(self.run),
            "protocol": self.record.protocol,
            "tls": self.record.tls,
            "senders": [vars(sender) for sender in self.record.senders] or None,
            "plan_order": described.order,
            "results_sha256": self.reading.sha256(primary if primary and primary.format != _OWN_REPORT else None),
            "source": self.reading.source(primary.name if primary else ""),
        }

    def _expected_requests(self) -> int | None:
        described, lasted_s = self.reading.metadata, self._lasted_s()
        if described.duration_s is None and lasted_s is not None:
            return contradictions.expected_by(described, lasted_s)
        return described.expected_requests

    def _evidence(self) -> str:
        """What the run's figures are computed from. A report never replaces a damaged file of requests."""
        if self.main_rows or (self.main is not None and FORMATS[self.main.format].report is None):
            return "raw"
        reports = self._main_reports().values()
        if any(report.histogram for report in reports):
            return "histogram"
        bare = self.main is None and any(file.kind == "summary" and file.stream == MAIN_STREAM for file in self.files)
        return "summary" if bare or any(report.summary for report in reports) else "raw"

    def _resolution_ns(self, primary: RawFile | None, generator: str | None) -> float | None:
        known = FORMATS[primary.format].resolution_ns if primary else None
        return load_generators.resolution_ns(generator) if known is None else known

    def _file(self, name: str | None) -> RawFile | None:
        return next((file for file in self.files if file.name == name), None)

    def _facts(self) -> dict[str, str]:
        """What else the tools report; the preferred report has precedence."""
        facts: dict[str, str] = {}
        for report in reversed(self._main_reports().values()):
            facts |= report.facts
        return facts

    def _generator(self, facts: Mapping[str, str]) -> tuple[str | None, str | None, dict[str, str]]:
        """Load generator, load model, and how these were inferred where the metadata do not name them."""
        described, inferred = self.reading.metadata, dict(self.reading.metadata.inferred)
        generator = described.generator
        load_model: str | None = described.load_model
        tools = {file.name: _format(file).generator for file in self.files}
        foreign = [tool for tool in tools.values() if tool]
        if "generator" in inferred and foreign and not any(file.format.startswith("results.") for file in self.files):
            generator = foreign[0]
            inferred["generator"] = f"the metadata names no load generator; the files are of {generator}"
        for name, tool in tools.items():
            if tool not in (None, generator):
                self._fault(name, exclusion.OTHER_GENERATOR, found=tool, expected=generator)
        named = facts.get("load_model")
        if "load_model" in inferred and generator != described.generator:
            load_model = named or load_generators.only_load_model(generator)
            why = "the tool says so" if named else "the tool supports no other" if load_model else "it is unknown"
            inferred["load_model"] = f"the metadata names no load model; {why}"
        elif named and named != load_model:
            name = next(name for name, report in self._main_reports().items() if "load_model" in report.facts)
            self._fault(name, exclusion.OTHER_LOAD_MODEL, found=named, expected=load_model)
        return generator, load_model, inferred

    def _users(self, facts: Mapping[str, str], load_model: str | None) -> int | None:
        if load_model != "closed":
            return None
        if self.reading.metadata.users is not None:
            return self.reading.metadata.users
        text = facts.get("users", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None

    def _started_at(self, facts: Mapping[str, str]) -> str | None:
        """ISO 8601 in UTC."""
        for text in (facts.get("started_at"), self.record.started):
            if text and (instant := parse_timestamp(text)) is not None:
                return instant.astimezone(UTC).isoformat()
        return None


def _format(file: RawFile) -> Format:
    """What such a file holds; nothing when its name is unknown."""
    return FORMATS.get(file.format) or Format()


def _rank(file: RawFile) -> tuple[int, bool, RawFile]:
    """The archive's own first, then what is read fastest."""
    return RANKS.get(file.format, len(RANKS)), not file.name.endswith(".zst"), file


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        name: redact.text(json_text(value)) if isinstance(value, str) else value for name, value in vars(figure).items()
    }


def _chunks(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    iterator = iter(rows)
    while some := list(islice(iterator, _ROWS)):
        yield some


def _version(described: Metadata) -> float:
    try:
        return float(described.version)
    except ValueError:
        return float(metadata.VERSION)
