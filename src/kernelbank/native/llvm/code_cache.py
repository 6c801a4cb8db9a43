"""Machine code that Numba keeps on disk, for functions that are compiled just in time.

Numba trusts its files: a truncated one stops the program, and of a changed byte in machine code
nobody would know. Here each file begins with a hash. One that does not fit is as if it were not
there, and the function is compiled again. A file that cannot be written costs the next process
time, and this one nothing.
"""

import hashlib
import pickle
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from ..progress import tell


class CodeCache(FunctionCache):  # type: ignore[misc]
    """The files of a function; `stamp` is the fingerprint of all the code behind it."""

    def __init__(self, function: Any, stamp: str) -> None:
        super().__init__(function)
        self._cache_file = _HashedFiles(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell_once(f"{error.filename or self._cache_path} cannot be written ({error.strerror})")


class _HashedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and data files, each after a hash of Numba's version and of its bytes."""

    def _load_index(self) -> dict[Any, str]:
        try:
            stamp, names = self._read(self._index_path)
        except OSError:
            return {}
        return names if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _digest(self, data: bytes) -> bytes:
        return hashlib.sha256(self._version.encode() + data).digest()

    def _read(self, path: str) -> Any:
        """What a file holds; an OSError, as if there were none, if its hash does not fit."""
        data = Path(path).read_bytes()
        if data[:32] != self._digest(data[32:]):
            raise OSError(f"{path} is damaged")
        return pickle.loads(data[32:])

    def _write(self, path: str, value: Any) -> None:
        data = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(self._digest(data) + data)


_told: set[str] = set()


def _tell_once(why: str) -> None:
    if not _told:
        _told.add(why)
        tell(f"kernelbank: {why}: compiled code is not kept, the next process compiles again.")
