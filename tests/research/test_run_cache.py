"""Kept runs of competitors: damaged files are computed again, full disks are told."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernelbank.errors import KernelBankWarning
from kernelbank.research.competitors import CompetitorRun, RunCache

COMPETITOR = SimpleNamespace(libraries=("numpy",), name="mean", description="", seeded=False)
STREAM = SimpleNamespace(fingerprint="of some rows")
KEPT = (COMPETITOR, 0, STREAM)
RUN = CompetitorRun(np.arange(20.0), 1e-3, note="as kept", jobs=1)


def test_damaged_file_is_as_if_it_were_not_there(tmp_path):
    cache = RunCache(tmp_path)
    cache.put(*KEPT, RUN)
    path = cache.path(*KEPT)
    whole = path.read_bytes()
    for length in range(0, len(whole), 50):
        path.write_bytes(whole[:length])
        assert cache.get(*KEPT) is None
    for place in range(0, len(whole), 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 33]) + whole[place + 1 :])
        found = cache.get(*KEPT)  # a few bytes of a zip file mean nothing
        assert found is None or found.predictions.tobytes() == RUN.predictions.tobytes()


@pytest.mark.parametrize("kind", ["full", "folder"])
def test_run_that_cannot_be_kept_is_told_by_name_and_not_lost(tmp_path, monkeypatch, kind):
    cache = RunCache(tmp_path)
    if kind == "full":

        def full(file, **_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(np, "savez_compressed", full)
    else:
        (cache.path(*KEPT) / "inner").mkdir(parents=True)
    with pytest.warns(KernelBankWarning, match=r"mean-\w+\.npz cannot be written"):
        cache.put(*KEPT, RUN)
    assert cache.get(*KEPT) is None
    assert not list(tmp_path.glob("*.part"))
