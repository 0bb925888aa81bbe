"""Uses the harness of the system tests, for tests that start a server."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))
