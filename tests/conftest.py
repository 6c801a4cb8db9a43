import pytest
from hypothesis import settings

import source_rigs

# Examples are drawn the same way in every run, so that a failure here is a failure everywhere.
settings.register_profile("house", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("house")


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    source_rigs.needs_redis_server()
    server = source_rigs.RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.client.close()
    server.stop()


@pytest.fixture(scope="session")
def kafka_broker():
    return source_rigs.KafkaBroker()
