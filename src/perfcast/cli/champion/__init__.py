"""Commands on a champion."""
