"""Models for the tests of `Adapter`."""

import kernelbank as kb


class Counter:
    """Predicts how much it has learned."""

    def __init__(self, fail_at=None):
        self.count, self.fail_at = 0, fail_at

    def predict_one(self, x):
        assert x.shape == (2,)
        return float(self.count)

    def learn_one(self, x, y):
        if self.count == self.fail_at:
            raise RuntimeError("enough")
        self.count += 1


def adapted_slot(model, **settings):
    return kb.Slot(kb.kernels.NoKernel(), kb.learners.Adapter(model, **settings))
