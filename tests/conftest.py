"""Options shared by all tests."""


def pytest_addoption(parser):
    parser.addoption("--fix", action="store_true", default=False, help="rewrite golden tables and show the difference")
