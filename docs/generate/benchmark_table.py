"""The tables of docs/benchmarks.md: run this script and paste what it prints; a test compares."""

import kernelbank as kb


def tables() -> list[str]:
    """Return the tables of streams and of their sources in Markdown, and the checksums of files."""
    found = kb.datasets.BENCHMARKS.values()
    streams = [
        f"| {one.name} | {one.about} | {_kind(one)} | {one.rows} x {one.inputs} | "
        f"{one.package or 'file'} |"
        for one in found
    ]
    sources = [f"| {one.name} | {one.source} | {one.licence} |" for one in found]
    sums = [f"{one.file_sha256}  {one.name}.csv.gz" for one in found if one.file_sha256]
    head = "| name | what is predicted from what | task | rows x inputs | from |"
    return [
        "\n".join([head, "|---|---|---|---:|---|", *streams]),
        "\n".join(["| name | source | licence |", "|---|---|---|", *sources]),
        "\n".join(["```text", *sums, "```"]),
    ]


def _kind(one: kb.datasets.Benchmark) -> str:
    task = "labels" if one.task == "classification" else "numbers"
    return f"{task}, seen" if one.seen else task


if __name__ == "__main__":
    print("\n\n".join(tables()))
