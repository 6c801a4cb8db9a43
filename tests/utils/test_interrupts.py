"""Deferred interrupts."""

import signal

import pytest

from kernelbank.utils.interrupts import defer_sigint

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_deferred_interrupt_is_raised_at_the_end():
    seen = []
    old = signal.signal(signal.SIGINT, lambda *_: seen.append("own"))
    try:
        with defer_sigint():
            signal.raise_signal(signal.SIGINT)
            assert not seen
        assert seen == ["own"]
    finally:
        signal.signal(signal.SIGINT, old)
    with pytest.raises(KeyboardInterrupt), defer_sigint():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is old
