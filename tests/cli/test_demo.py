"""`kernelbank demo`: what it writes and prints, and that the commands it names work."""

import csv
import re

import pytest
from click.testing import CliRunner

from kernelbank.cli import commands, demo
from support.run_command import read_csv
from support.shell import run_script


def kernelbank_demo(out):
    return CliRunner().invoke(commands.cli, ["demo", "--out", str(out)])


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The folder of a demo, and what it printed."""
    out = tmp_path_factory.mktemp("played") / "my demo"
    result = kernelbank_demo(out)
    assert result.exit_code == 0, result.output
    return out, result.output


def test_demo_leaves_stream_predictions_and_report(played):
    out, _ = played
    assert {path.name for path in out.iterdir()} == {
        "heat_pump.csv",
        "predictions.csv",
        "report.html",
    }
    _, rows = read_csv(out / "predictions.csv")
    assert len(rows) == demo.ROWS
    assert f'"rows":{demo.ROWS}' in (out / "report.html").read_text(encoding="utf-8")


def test_demo_says_that_its_stream_is_simulated(played):
    _, printed = played
    assert "simulated (nothing here was measured)" in printed.splitlines()[0]


def test_demo_summary_names_a_change_soon_after_the_change_of_the_stream(played):
    _, printed = played
    (row,) = re.findall(r"detected changes .*after row ([\d,]+)", printed)
    # The errors grow at once, and have become small again within two weeks.
    assert 0 <= int(row.replace(",", "")) - demo.CHANGE_ROW < 14 * 24


def test_demo_is_more_accurate_than_the_last_value(played):
    _, printed = played
    error, baseline = (
        float(re.search(rf"{name} +([\d.]+)", printed)[1]) for name in ("RMSE", "last value[)]")
    )
    assert error < baseline / 2


def test_demo_shows_predictions_from_the_file(played):
    out, printed = played
    with open(out / "predictions.csv", newline="") as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    row = rows[str(demo.CHANGE_ROW)]
    line = rf"{demo.CHANGE_ROW:,} +{float(row['prediction']):.2f} .* {row['target']} "
    assert re.search(line, printed)


def test_second_demo_replaces_the_first(played):
    out, _ = played
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix == ".csv"}
    assert kernelbank_demo(out).exit_code == 0
    assert {name: (out / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("name", ["heat_pump.csv", "predictions.csv", "report.html"])
def test_demo_does_not_replace_files_of_others(name, tmp_path):
    (tmp_path / name).write_text("mine\n")
    result = kernelbank_demo(tmp_path)
    assert result.exit_code == 2
    assert f"{name} exists, and is not from an earlier demo. Give another folder" in result.output
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine\n"


def test_demo_stream_has_what_the_demo_tells_of_it(tmp_path):
    path = tmp_path / "stream.csv"
    demo.write_stream(path)
    header, rows = read_csv(path)
    assert tuple(header) == demo.COLUMNS
    assert len(rows) == demo.ROWS
    assert path.stat().st_size < 200_000
    assert {row[3] for row in rows} == {"heating", "hot water", "holiday"}
    silent = [n for n, row in enumerate(rows, 1) if not row[1]]
    assert 40 < len(silent) < 100
    before, after = rows[demo.CHANGE_ROW - 2 : demo.CHANGE_ROW]
    assert abs(float(after[4]) - float(before[4]) - demo.CHANGE_KW) < 0.3


@pytest.mark.slow
def test_commands_that_the_demo_prints_work_as_printed(played, tmp_path):
    out, printed = played
    blocks = re.findall(r"(?:^    (?! {3}).*(?:\n {6,}.*)*)", printed, re.MULTILINE)
    script = [block for block in blocks if re.match(r" +(kernelbank run|python|while) ", block)]
    first, resumable, model, live, own, options = script
    assert f"{out}" in first
    assert "--state" in resumable
    assert "kb.load" in model
    first = first.replace("predictions.csv", "other.csv").replace("report.html", "other.html")
    slow = 'for n in $(seq 150); do read -r row; echo "$row"; done'
    live = re.sub(r"while .*; done", slow, live)
    own = own.replace("FILE.csv", "own.csv").replace("COLUMN", "y")
    (tmp_path / "own.csv").write_text("a,y\n" + "".join(f"{n % 7},{n % 5}\n" for n in range(50)))
    commands = [first, resumable, resumable, model, live, own, options]
    done = run_script("\n".join(commands), tmp_path)
    assert "Live page: http://" in done.stderr
    assert "AutoBank" in done.stdout
    assert (out / "other.csv").read_bytes() == (out / "predictions.csv").read_bytes()
    assert (out / "again.csv").read_bytes() == (out / "predictions.csv").read_bytes()
