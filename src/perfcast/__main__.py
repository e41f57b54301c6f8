"""`python -m perfcast`."""

import sys

from perfcast.cli.main import main

sys.exit(main())
