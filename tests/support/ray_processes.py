"""Ray clusters and drivers in processes of their own, for tests of tokens and signals."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HEAD = """
import json, sys
import ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
         logging_level="ERROR", configure_logging=False)
from ray._private import state

print(json.dumps({"address": ray.get_runtime_context().gcs_address}), flush=True)
for _ in sys.stdin:
    print(json.dumps({"actors": len(state.actors()), "jobs": len(state.jobs())}), flush=True)
"""

DRIVER = """
import json, sys
import numpy as np
import kernelbank as kb
options = json.loads(sys.argv[1])
X = np.random.default_rng(0).normal(size=(300, 2))
y = X.sum(1)
try:
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 3, 8), engine=kb.engines.Ray(shards=2, **options))
    predictions = bank.run(X, y).predictions
except kb.errors.KernelBankError as error:
    print(f"refused: {error}", flush=True)
else:
    same = np.array_equal(predictions, kb.KernelBank(kb.gaussian_grid(0.1, 3, 8)).run(X, y).predictions)
    print(f"same: {same}", flush=True)
    if "wait" in sys.argv:
        import ray
        print(ray.get_runtime_context().gcs_address, flush=True)
        sys.stdin.read()
"""


def environment(**settings):
    """The environment of a process that finds the modules of the project, and no token of ours."""
    source = Path(__file__).parents[2] / "src"
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("RAY_")}
    return {
        **inherited,
        "PYTHONPATH": str(source),
        "PYTHONWARNINGS": "ignore",
        "RAY_USAGE_STATS_ENABLED": "0",
        **settings,
    }


def with_token(folder, **settings):
    """The environment of a process with the token in `folder`."""
    return environment(
        RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(Path(folder) / "token"), **settings
    )


def start(words, env, **settings):
    """A process of Python that writes to a pipe."""
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **settings,
    )


class Head:
    """Somebody's cluster: a process that has started Ray and answers questions about it."""

    def __init__(self, env):
        self.process = start(["-c", HEAD], env)
        self.address = json.loads(self.process.stdout.readline())["address"]

    def ask(self):
        """How many actors and jobs the cluster has had."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.stdout.close()


@contextmanager
def head(env):
    """A cluster as `env` says; its processes end with the block."""
    cluster = Head(env)
    try:
        yield cluster
    finally:
        cluster.stop()


def start_driver(env, *words, **options):
    """A process with a bank on Ray with these options; its first line says how that went.

    With the word "wait" the second line is the address of the cluster, which lives until the end.
    """
    return start(["-c", DRIVER, json.dumps(options), *words], env)


def run_driver(env, **options):
    """What a driver says."""
    driver = start_driver(env, **options)
    said, _ = driver.communicate(timeout=120)
    return said.strip()


def end(process):
    """End a process that may have ended, without its help."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
