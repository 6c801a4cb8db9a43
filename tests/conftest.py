import os

import pytest
from hypothesis import settings

from support import source_fixtures

# Examples are drawn the same way in every run, so that a failure here is a failure everywhere.
settings.register_profile("house", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("house")

# These compile functions of their own: tests/native/test_just_in_time.py runs them.
collect_ignore = [] if os.environ.get("KERNELBANK_NATIVE") == "jit" else ["jit"]

ON_RAY = (
    "test_ray.py",
    "test_ray_authentication.py",
    "test_ray_faults.py",
    "test_ray_outputs.py",
    "test_ray_processes.py",
    "test_runner_ray.py",
    "docs/test_notebooks.py",
    "docs/test_site.py",
    "docs/test_tutorials.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs all tests that start a Ray cluster, so that there is one at a time.

    (With `--dist loadgroup`; the marks of that name have no effect in newer versions of pytest.)
    """
    from xdist.scheduler import LoadGroupScheduling

    class OneCluster(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return "ray" if nodeid.partition("::")[0].endswith(ON_RAY) else nodeid

    return OneCluster(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    source_fixtures.needs_redis_server()
    server = source_fixtures.RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.client.close()
    server.stop()


@pytest.fixture(scope="session")
def kafka_broker():
    return source_fixtures.KafkaBroker()
