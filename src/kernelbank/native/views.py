"""Parts of arrays inside compiled code, beyond indices and slices.

| function                    | result                                                           |
|-----------------------------|------------------------------------------------------------------|
| `load_four(row, j)`         | the numbers row[j] .. row[j + 3] as lanes                        |
| `store_four(row, j, v)`     | writes lanes to row[j] .. row[j + 3]                             |
| `columns_from(matrix, j)`   | the columns of a matrix from j on: the same rows, beginning later |
| `row_length(matrix)`        | the length of the rows, which is their distance in memory         |
"""

from .library import COMPILING, compiled_only

if COMPILING:
    from .llvm.views import columns_from, load_four, row_length, store_four
else:
    columns_from = load_four = row_length = store_four = compiled_only

__all__ = ["columns_from", "load_four", "row_length", "store_four"]
