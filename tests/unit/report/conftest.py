"""Generated results, made once for the tests of the report."""

import pytest
from generated_results import FAKE_PARAMS, write_results

from perfcast.evaluation import read_evaluation
from perfcast.report.report_context import collect


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, rows=500, seed=0)
    return folder


@pytest.fixture(scope="session")
def context(results):
    return collect(results, FAKE_PARAMS, titles={"fake": "Generated <servers>"}, sources={"fake": ["fake"]})


@pytest.fixture(scope="session")
def part(context):
    return context.datasets[0]


@pytest.fixture(scope="session")
def evaluation(results):
    return read_evaluation(results / "evaluation" / "fake")
