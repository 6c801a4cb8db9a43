"""Several outputs on Ray: the bits of a bank of its own for each."""

import pytest

import kernelbank as kb
from support import ray_cluster
from support.output_banks import OUTPUTS, assert_same_as_alone, columns, light_cases, run_alone

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

CASES = {
    name: case
    for name, case in light_cases().items()
    if name.startswith("learners") or "Simplex()" in name or "Stacking" in name
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ray_cluster.private_token(tmp_path_factory):
        yield
        import ray

        ray.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_outputs_on_ray_are_those_of_banks_of_their_own(name, cluster):
    case = CASES[name]
    bank = case.make(kb.engines.Ray(shards=2, block=70), outputs=OUTPUTS)
    trace = bank.run(case.X, columns(case.y))
    assert_same_as_alone(bank, [trace], run_alone(case))
    ray_cluster.release_processes()
