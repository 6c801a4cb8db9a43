"""The command `kernelbank compare`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import kernelbank as kb
from kernelbank.cli import commands
from support.comparisons import noisy_stream, write_text
from support.marks import slow

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def run(*arguments):
    return CliRunner().invoke(commands.cli, [str(argument) for argument in arguments])


def test_compare_command_writes_tables(tmp_path):
    X, y = noisy_stream(0, 80)
    lines = [f"{a},{b},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    path = write_text(tmp_path / "load.csv.gz", "a,b,load\n" + "\n".join(lines) + "\n")
    result = run(
        "compare", path, "sine", "--target", "load", "--learners", "Norma, KRLS", "--rivals", "raker",
        "--combiners", "Simplex,Stacking", "--seeds", 2, "--samples", 70, "--standardise", 30, "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "out" / "table.json").read_text())
    names = {row["name"] for row in written["results"]}
    assert names == {
        *(f"{learner} {rule}" for learner in ("Norma", "KRLS") for rule in ("Simplex", "Stacking")),
        "raker",
        "AutoBank",
        "persistence",
        "running mean",
    }
    assert {row["stream"]: row["samples"] for row in written["results"]} == {"load": 40, "sine": 40}
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert table in result.output
    for words in ("load, 40 samples", "2 seeds", "persistence", "mean rank"):
        assert words in " ".join(result.output.split()), words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.csv"], "nothing.csv: there is no such file"),
        (["nothing"], "not the name of a stream"),
        (["ar1", "--learners", "Norm"], "--learners: there is no 'Norm'. Use "),
        (["ar1", "--learners", "Norma(budget=3)"], "Settings of components are for kb.compare"),
        (["ar1", "--learners", "PartitionTree"], "PartitionTree Simplex: "),
        (["ar1", "--rivals", "rakers"], "no 'rakers'. Use adaraker, raker"),
        (["ar1", "--loss", "unheard"], "'loss' must be"),
    ],
)
def test_wrong_options_are_refused_in_one_line(arguments, words, tmp_path):
    result = run("compare", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_bad_cell_is_refused_in_one_line_with_line_and_column(tmp_path):
    path = write_text(tmp_path / "t.csv", "a,y\n1,2\nyes,3\n")
    result = run("compare", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert result.output.startswith(f"kernelbank: {path.name}, line 3, column 'a': 'yes' is no")
    assert len(result.output.strip().splitlines()) == 1
    assert "name columns that have them with --features and --target" in result.output
    path.write_text("a,y\n1,2\n,3\n")
    assert (
        "is missing. `kernelbank compare` needs a number in every cell"
        in run("compare", path).output
    )


@pytest.mark.parametrize("rows", [slow(0), 30])
def test_file_arrays_and_command_are_standardised_by_one_rule(tmp_path, rows):
    X, y = noisy_stream(5, 80)
    X, y = 40 + 7 * X, 500 + 90 * y
    lines = [f"{a};{b};{c}".replace(".", ",") for (a, b), c in zip(X, y, strict=True)]
    plain = [f"{a},{b},{c}" for (a, b), c in zip(X, y, strict=True)]
    semicolons = write_text(tmp_path / "s.csv", "a;b;y\n" + "\n".join(lines) + "\n")
    path = write_text(tmp_path / "t.csv", "a,b,y\n" + "\n".join(plain) + "\n")
    result = run(
        "compare", semicolons, "--delimiter", ";", "--decimal", ",", "--standardise", rows,
        "--learners", "Norma", "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert ("KernelBank starts at 0" in " ".join(result.output.split())) == (rows == 0)
    written = json.loads((tmp_path / "out" / "table.json").read_text())["results"]
    by_command = {row["name"]: row["mean_loss"] for row in written}
    banks = {"Norma Simplex": kb.KernelBank(kb.gaussian_grid(0.1, 10, 20))}
    X, y = kb.datasets.standardised(*kb.datasets.read_csv(path), rows) if rows else (X, y)
    for stream in ((X, y), kb.datasets.Stream(X, y), lambda seed: (X, y)):
        found = kb.compare(banks, {"t": stream}, skip=rows)
        for name in ("Norma Simplex", "persistence", "running mean"):
            assert found.result("t", name).mean_loss == by_command[name]
    last = np.concatenate([[0.0], y[:-1]])
    assert by_command["persistence"] == pytest.approx(((last - y)[rows:] ** 2).mean())
