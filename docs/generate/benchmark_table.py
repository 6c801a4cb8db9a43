"""The tables of docs/benchmarks.md: run this script and paste what it prints; a test compares."""

import kernelbank as kb


def tables() -> str:
    """Return the table of streams, and that of checksums, in Markdown."""
    found = kb.datasets.BENCHMARKS.values()
    streams = [
        f"| {one.name} | {one.about} | {_kind(one)} | {one.rows} x {one.inputs} | {one.source} | "
        f"{one.licence} | {one.package or 'file'} |"
        for one in found
    ]
    sums = [f"{one.file_sha256}  {one.name}.csv.gz" for one in found if one.file_sha256]
    return "\n".join(
        [
            "| name | what is predicted from what | task | rows x inputs | source | licence "
            "| from |",
            "|---|---|---|---:|---|---|---|",
            *streams,
            "",
            "```text",
            *sums,
            "```",
            "",
        ]
    )


def _kind(one: kb.datasets.Benchmark) -> str:
    task = "labels" if one.task == "classification" else "numbers"
    return f"{task}, seen" if one.seen else task


if __name__ == "__main__":
    print(tables())
