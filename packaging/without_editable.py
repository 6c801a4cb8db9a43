"""As sitecustomize.py in a folder of PYTHONPATH: its package is imported, not the editable one.

The finder of an editable installation comes before the paths, so that a build beside it would never
be loaded. `make sanitize` uses this.
"""

import sys

sys.meta_path[:] = [
    finder for finder in sys.meta_path if type(finder).__module__ != "_editable_skbc_kernelbank"
]
