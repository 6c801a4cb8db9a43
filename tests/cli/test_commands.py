"""The command line, as its user meets it."""

import csv
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from kernelbank.cli import commands


def kernelbank(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", "from kernelbank.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_help_imports_no_heavy_library():
    code = (
        "import sys; from kernelbank.cli import commands\n"
        "try: commands.cli(['--help'], prog_name='kernelbank')\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kernelbank reproduce" in done.stdout


def test_version_option_prints_the_version():
    assert "kernelbank, version 0." in kernelbank("--version").stdout


def test_reproduce_writes_figures_and_tables(tmp_path):
    out = tmp_path / "deep" / "folder [b] with [/b] brackets"
    options = ["--out", str(out), "--seeds", "2", "--samples", "60", "--combiners"]
    result = CliRunner().invoke(commands.cli, ["reproduce", *options])
    assert result.exit_code == 0, result.output
    names = {"cumulative_cost", "reconstruction", "online_setting"}
    files = {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    tables = {"curves.csv", "table.csv", "verdict.csv", "combiners.csv"}
    assert set(os.listdir(out)) == files | tables
    assert all((out / name).stat().st_size > 5000 for name in files)
    with (out / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    assert float(rows[9]["reference"]) == 100.0
    assert len([name for name in rows[0] if name.startswith("norma_")]) == 20
    assert "[b] with [/b]" in result.output.replace("\n", "")
    for phrase in ("2 seeds, 60 samples", "best NORMA", "What the paper claims", "one step ahead"):
        assert phrase.lower() in result.output.lower()
    with (out / "verdict.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["noise"] for row in rows} == {"variance", "std", "generator"}
    assert {int(row["samples"]) for row in rows} == {60, 300, 500, 1000, 2000, 5000}
    assert len(rows) == 3 * 6 * 3
    below = {(r["noise"], r["samples"]): r["seeds_below"] for r in rows if r["rival"] == "OMKR"}
    assert below["variance", "300"] == "2"
    assert below["variance", "5000"] == "0"
    with (out / "combiners.csv").open() as file:
        rules = {row["of"]: row for row in csv.DictReader(file)}
    assert float(rules["Hedge()"]["seed_1"]) > 0
    lines = result.output.splitlines()
    assert max(map(len, lines[: lines.index("What the paper claims besides")])) <= 80
    text = " ".join(result.output.split())
    assert re.search(r"300 │ +2 +\+\d", result.output)


@pytest.mark.slow
def test_reproduce_twice_writes_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        arguments = [
            "reproduce",
            "--out",
            str(tmp_path / folder),
            "--seeds",
            "1",
            "--samples",
            "50",
        ]
        assert CliRunner().invoke(commands.cli, arguments).exit_code == 0
    for name in os.listdir(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "--seeds", "0"], "--seeds"),
        (["reproduce", "--samples", "many"], "--samples"),
        (["reproduce", "--samples", "1000000000000"], "--samples"),
        (["reproduce", "--noise", "loud"], "--noise"),
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
    assert done.returncode == 1
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
    assert done.returncode == 1
    assert f"kernelbank[{extra}]" in done.stderr
    assert not (tmp_path / "out").exists()
    assert "Traceback" not in done.stderr
