"""Which kernels of an adaptive dictionary run, by the rules in the docstring of `AdaptiveDictionary`."""

import numpy as np


def first_kernels(pool, size):
    """Evenly spaced, halves rounded up; the middle one alone."""
    if size == 1:
        return [(pool - 1) // 2]
    return [int(np.floor(i * (pool - 1) / (size - 1) + 0.5)) for i in range(size)]


class Pool:
    """Which kernels run, how often each has been started, and when it was last retired."""

    def __init__(self, kernels, size):
        self.members = first_kernels(kernels, size)
        self.started = {k: [] for k in range(kernels)}  # after how many samples
        self.stopped = dict.fromkeys(range(kernels), 0)
        for k in self.members:
            self.started[k].append(0)
        self.exchanged = 0
        self.idle = [0] * size

    def runs(self, k):
        return len(self.started[k])

    def revise(self, shares, samples, threshold, retire, patience):
        """The slots whose kernels were exchanged."""
        size = len(self.members)
        for p in range(size):
            self.idle[p] = self.idle[p] + 1 if shares[p] < threshold / size else 0
        waiting = [p for p in range(size) if self.idle[p] >= patience]
        waiting.sort(key=lambda p: (shares[p], p))
        most = min(max(1, int(retire * size)), len(self.started) - size)
        places = waiting[:most]
        gone = [self.members[p] for p in places]
        staying = [p for p in range(size) if p not in places and shares[p] > 0]
        staying.sort(key=lambda p: (-shares[p], p))
        before = list(self.members)
        for k in gone:
            self.stopped[k] = samples
        running = [self.members[p] for p in range(size) if p not in places]
        refinements = 0
        for p in places:
            free = [k for k in self.started if k not in running and k not in gone]
            if self.exchanged % 2 == 0 and staying:
                near = before[staying[refinements % len(staying)]]
                refinements += 1
                chosen = min(free, key=lambda k: (abs(k - near) * (1 + self.runs(k)), k))
            else:
                fewest = min(map(self.runs, free))
                rare = [k for k in free if self.runs(k) == fewest]
                if fewest == 0:
                    known = [k for k in self.started if self.runs(k)]
                    chosen = max(rare, key=lambda k: (min(abs(k - j) for j in known), -k))
                else:
                    chosen = min(rare, key=lambda k: (self.stopped[k], k))
            running.append(chosen)
            self.members[p] = chosen
            self.started[chosen].append(samples)
            self.idle[p] = 0
            self.exchanged += 1
        return places
