"""The page of public benchmarks, made of `kb.datasets.BENCHMARKS`."""

import kernelbank as kb

HEAD = """# Public benchmarks

The streams that `kb.datasets.load` and `kb.compare` know by name ([how they are
used](../compare.md#public-benchmarks)). "seen": the default slots of AutoBank were chosen with
this stream in view ([accuracy](../accuracy.md)). "from": an installed package, or only a file
`name.csv.gz` with a header, numbers, and the target last. Nothing is downloaded, and kernelbank
brings none of these data."""

SOURCES = """## Sources and licences

Licences are as the sources state them. Where a licence begins with UCI it is the general one of
the UCI repository, from which the source took the data; the source does not restate it. After @
is a commit."""

CHECKSUMS = """## Checksums

What `sha256sum` prints for the files. `kb.datasets.load` compares the numbers themselves
(`Benchmark.sha256`), so a file that was packed or written otherwise is recognised too:"""


def benchmark_page() -> dict[str, str]:
    """Return the page of all streams, their sources and the checksums of files, by its path."""
    streams = kb.datasets.BENCHMARKS.values()
    table = [
        "| name | what is predicted from what | task | rows x inputs | from |",
        "|---|---|---|---:|---|",
    ]
    table += [
        f"| {stream.name} | {stream.about} | {_task(stream)} | {stream.rows} x {stream.inputs} | "
        f"{stream.package or 'file'} |"
        for stream in streams
    ]
    sources = ["| name | source | licence |", "|---|---|---|"]
    sources += [f"| {stream.name} | {stream.source} | {stream.licence} |" for stream in streams]
    sums = [
        f"{stream.file_sha256}  {stream.name}.csv.gz" for stream in streams if stream.file_sha256
    ]
    parts = [HEAD, "\n".join(table), SOURCES, "\n".join(sources), CHECKSUMS]
    parts.append("\n".join(["```text", *sums, "```"]))
    return {"reference/benchmarks.md": "\n\n".join(parts) + "\n"}


def _task(stream: kb.datasets.Benchmark) -> str:
    task = "labels" if stream.task == "classification" else "numbers"
    return f"{task}, seen" if stream.seen else task
