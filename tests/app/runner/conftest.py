from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.crash_scenarios import ScenarioRunner, open_scenarios


@pytest.fixture(scope="session")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScenarioRunner]:
    """Runs in processes that can be killed, in folders of their own; what they read is not changed."""
    with open_scenarios(tmp_path_factory.mktemp("scenarios")) as found:
        yield found
