"""The command line, as its user meets it: help, `reproduce` and `demo`."""

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from kernelbank.cli import commands, demo, experiments
from support.run_command import read_csv, run_script


def kernelbank(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", "from kernelbank.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.parametrize("command", [[], ["compare"]])
def test_help_imports_no_heavy_library(command):
    code = (
        "import sys; from kernelbank.cli import commands\n"
        f"try: commands.cli([*{command}, '--help'], prog_name='kernelbank')\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: kernelbank" in done.stdout


@pytest.mark.slow
def test_reproduce_writes_figures_and_tables(tmp_path):
    out = tmp_path / "deep" / "folder [b] with [/b] brackets"
    options = ["--out", str(out), "--seeds", "1", "--samples", "60"]
    result = CliRunner().invoke(commands.cli, ["reproduce", *options])
    assert result.exit_code == 0, result.output
    assert set(os.listdir(out)) == {"cumulative_cost.png", "cumulative_cost.svg", "tables.json"}
    assert "[b] with [/b]" in result.output.replace("\n", "")
    written = json.loads((out / "tables.json").read_text())
    assert set(written["verdict"]) == {"variance", "std", "generator"}
    rows = {(r["samples"], r["rival"]): r for r in written["verdict"]["variance"]}
    assert len(rows) == 6 * 3
    assert (rows[300, "OMKR"]["below"], rows[5000, "OMKR"]["below"]) == (1, 0)
    lines = result.output.splitlines()
    last = next(n for n, line in enumerate(lines) if line.startswith("Written to"))
    assert max(map(len, lines[:last])) <= 80


def test_summary_of_reproduce_is_the_table_of_costs(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "LENGTHS", (50, 300))
    out = tmp_path / "out"
    options = ["--out", str(out), "--seeds", "1", "--samples", "50", "--summary"]
    result = CliRunner().invoke(commands.cli, ["reproduce", *options])
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) < 35
    assert re.search(r"standard +│ +50 │ +1 ", result.output)
    assert "one step ahead" not in result.output
    assert (out / "tables.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "--seeds", "0"], "--seeds"),
        (["reproduce", "--samples", "1000000000000"], "--samples"),
        (["reproduc"], "No such command"),
        (["reproduce", "extra"], "unexpected extra argument"),
    ],
)
def test_wrong_usage_exits_with_one_message(arguments, message):
    done = kernelbank(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_unwritable_folder_exits_with_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = kernelbank("reproduce", "--out", str(tmp_path / "file" / "below"), "--seeds", "1")
    assert done.returncode == 2
    assert done.stderr.startswith("kernelbank: ")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("missing", "extra"), [("click", "cli"), ("rich", "cli"), ("matplotlib", "plot")]
)
def test_missing_extra_is_named_before_any_work(tmp_path, missing, extra):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        f"sys.argv = ['kernelbank', 'reproduce', '--seeds', '1', '--samples', '5', "
        f"'--out', {str(tmp_path / 'out')!r}]\n"
        "from kernelbank.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == (2 if missing == "matplotlib" else 1)
    assert f"kernelbank[{extra}]" in done.stderr
    assert not (tmp_path / "out").exists()
    assert "Traceback" not in done.stderr


pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")

# --- `kernelbank demo`: what it writes and prints, and that the commands it names work ---


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


def test_demo_summary_names_a_change_soon_after_the_change_of_the_stream(played):
    _, printed = played
    (row,) = re.findall(r"detected changes .*after row ([\d,]+)", printed)
    # The errors grow at once, and have become small again within two weeks.
    assert 0 <= int(row.replace(",", "")) - demo.CHANGE_ROW < 14 * 24


@pytest.mark.parametrize("name", ["heat_pump.csv", "predictions.csv"])
def test_demo_does_not_replace_files_of_others(name, tmp_path):
    (tmp_path / name).write_text("mine\n")
    result = kernelbank_demo(tmp_path)
    assert result.exit_code == 2
    assert f"{name} exists, and is not from an earlier demo. Give another folder" in result.output
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine\n"


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
