import signal

import pytest
from hypothesis import settings

from kernelbank.run import session
from support import crash_scenarios, source_fixtures
from support.run_command import one_slot_model

# Examples are drawn the same way in every run, so that a failure here is a failure everywhere.
settings.register_profile("house", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("house")

# A shell ignores these for commands in the background, and what they start inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Files that one process runs one after another: Ray's, so that there is one cluster at a time, and
# those that share the process that `kernelbank run` is forked from.
TOGETHER = {
    "test_ray.py": "ray",
    "test_ray_clusters.py": "ray",
    "test_ray_faults.py": "ray",
    "test_docs.py": "ray",
    "test_site.py": "ray",
    "test_crashes.py": "scenarios",
    "test_failing_calls.py": "scenarios",
    "test_growing_files.py": "scenarios",
    "test_tampering.py": "scenarios",
}

# Long files whose tests share nothing: any process takes the next one. They come last.
APART = (
    "test_checks.py",
    "test_definition.py",
    "test_learners.py",
    "test_river.py",
    "test_same_bits.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests on a cluster are slow ones: Ray is not among what the quick ones install."""
    for item in items:
        if "cluster" in item.fixturenames:
            item.add_marker("slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs all tests of a file, so that a fixture of a module is made once.

    (With `--dist loadgroup`; the marks of that name have no effect in newer versions of pytest.)
    """
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            name = path.rpartition("/")[2]
            return nodeid if name in APART else TOGETHER.get(name, path)

    return ByFile(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture
def light(monkeypatch):
    """Runs have a model of one cheap slot: for tests of what is around it."""
    monkeypatch.setattr(session, "make_model", one_slot_model)


def serve_redis(folder):
    source_fixtures.needs_redis_server()
    server = source_fixtures.RedisServer(folder)
    yield server
    server.client.close()
    server.stop()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    yield from serve_redis(tmp_path_factory.mktemp("redis"))


@pytest.fixture
def lossy_server(tmp_path):
    """A server of one test alone, which may stop it."""
    yield from serve_redis(tmp_path)


@pytest.fixture(scope="session")
def kafka_broker():
    return source_fixtures.KafkaBroker()


@pytest.fixture(scope="session")
def scenarios(tmp_path_factory):
    """Runs in processes that can be killed, in folders of their own; what they read is not changed."""
    with crash_scenarios.open_scenarios(tmp_path_factory.mktemp("scenarios")) as found:
        yield found
