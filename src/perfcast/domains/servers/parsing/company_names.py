"""Parser of company names: aliases of one company have one name."""

from __future__ import annotations

import re

_NAMES_BY_BEGINNING = (
    ("lenovo", "Lenovo"),
    ("dell", "Dell"),
    ("hpe", "HPE"),
    ("hewlett packard", "HPE"),
    ("hewlett-packard", "HPE"),
    ("cisco", "Cisco"),
    ("huawei", "Huawei"),
    ("intel supermicro", "Supermicro"),
    ("supermicro", "Supermicro"),
    ("supermico", "Supermicro"),
    ("super micro", "Supermicro"),
    ("asustek", "ASUS"),
    ("xfusion", "xFusion"),
    ("fujitsu", "Fujitsu"),
    ("nec", "NEC"),
    ("tyrone", "Tyrone"),
    ("netweb", "Netweb"),
    ("new h3c", "H3C"),
    ("h3c", "H3C"),
    ("inspur", "Inspur"),
    ("ieit", "Inspur"),
    ("kaytus", "Kaytus"),
    ("giga-byte", "Gigabyte"),
    ("giga computing", "Gigabyte"),
    ("quanta", "Quanta"),
    ("fusionstor", "FusionStor"),
    ("bull", "Atos"),
    ("atos", "Atos"),
    ("eviden", "Atos"),
    ("zte", "ZTE"),
    ("altos", "Altos"),
    ("epsylon", "Epsylon"),
    ("esconet", "Esconet"),
    ("asrock", "ASRock Rack"),
    ("intel", "Intel"),
    ("ibm", "IBM"),
    ("oracle", "Oracle"),
    ("acer", "Acer"),
    ("china academy of information", "CAICT"),
    ("telecommunications technology association", "TTA"),
)
_PATTERNS = tuple((re.compile(rf"{re.escape(start)}\b"), name) for start, name in _NAMES_BY_BEGINNING)
_LEGAL_FORM = re.compile(
    r"[,\s]+(?:inc|ltd|co|corp|corporation|incorporated|limited|gmbh|s\.?r\.?o|sp\. z o\.o|pte|technologies)\.?$",
    re.IGNORECASE,
)


def normalize_company(name: str) -> str | None:
    """Return the canonical name of a company; for an unlisted company, its name without the legal form."""
    text = " ".join(name.split())
    folded = text.casefold()
    listed = next((canonical for pattern, canonical in _PATTERNS if pattern.match(folded)), None)
    while listed is None and (shorter := _LEGAL_FORM.sub("", text)) not in ("", text):
        text = shorter
    return listed or text.strip(" ,.") or None
