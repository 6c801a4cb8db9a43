"""What is compared: warm-up, caching of runs, competitors of all kinds."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import KernelBankWarning
from kernelbank.research import competitors
from kernelbank.research.competitors import RIVAL, Competitor, CompetitorRun, RunCache
from support.streams import noisy_stream

LENGTHS = []


class Counts:
    """Predicts how many samples it has learned."""

    def __init__(self):
        self.learned = 0

    def predict_one(self, x):
        return float(self.learned)

    def learn_one(self, x, y):
        self.learned += 1


def _own_run(seed, stream):
    LENGTHS.append(len(stream))
    return CompetitorRun(np.zeros(len(stream)), 1.0)


def _lengths_of(monkeypatch, kind):
    """The lengths of the runs of each kind of competitor, in order."""
    found = []
    run = getattr(competitors, kind)

    def counting(model, stream, *more, **settings):
        found.append(len(stream))
        return run(model, stream, *more, **settings)

    monkeypatch.setattr(competitors, kind, counting)
    return found


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (lambda: kb.KernelBank(kb.gaussian_grid(0.5, 2, 2)), "_run_bank"),
        (lambda: kb.AutoBank(size="small"), "run_auto_bank"),
        (Counts, "_run_one_by_one"),
    ],
)
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_every_kind_runs_over_the_first_rows_and_then_over_all(monkeypatch, given, kind):
    lengths = _lengths_of(monkeypatch, kind)
    made = {"given": given(), "made": lambda seed: given()}
    found = kb.compare(made, {"s": noisy_stream(0, 250)})
    assert lengths == [200, 250, 200, 250]
    assert found.result("s", "given").mean_loss == found.result("s", "made").mean_loss


def test_competitor_with_a_run_of_its_own_and_baselines_are_warmed_up(monkeypatch):
    LENGTHS.clear()
    kb.compare({"own": Competitor("own", RIVAL, _own_run)}, {"s": noisy_stream(0, 250)})
    assert LENGTHS == [200, 250]
    lengths = []
    last = competitors._last_target

    def counting(y):
        lengths.append(len(y))
        return last(y)

    monkeypatch.setattr(competitors, "_last_target", counting)
    kb.compare({"own": Competitor("own", RIVAL, _own_run)}, {"s": noisy_stream(0, 250)})
    assert lengths == [200, 250]


def test_warm_up_does_not_teach_a_competitor():
    X, y = noisy_stream(0, 250)
    found = kb.compare({"counts": Counts()}, {"s": (X, y)}, keep_losses=True)
    assert found.result("s", "counts").losses == pytest.approx((np.arange(250) - y) ** 2)


def test_runs_that_share_what_they_learned_are_found_out():
    shared = Counts()
    with pytest.warns(KernelBankWarning, match="leaks does not predict the same"):
        kb.compare({"leaks": lambda seed: shared}, {"s": noisy_stream(0, 250)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kb.compare({"fine": lambda seed: Counts()}, {"s": noisy_stream(0, 250)})


def test_progress_says_how_long_a_run_took():
    said = []
    kb.compare(
        {"own": Competitor("own", RIVAL, _own_run)},
        {"s": noisy_stream(0, 30)},
        progress=lambda done, total, what: said.append(what),
    )
    assert said[0] == "own on s: 30 s"


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
