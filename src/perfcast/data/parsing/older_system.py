"""Operating system, orderable chips and processor characteristics as they were typed in results of 2006 to 2014."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.data.parsing.operating_system import OperatingSystem, parse_operating_system
from perfcast.data.parsing.scalars import Orderable, parse_orderable
from perfcast.data.parsing.text_normalization import compile_pattern, normalize

_WINDOWS_RELEASES = (
    (compile_pattern(r"\bWindows\*? ?Vista ?(?:32|64)?"), "Windows 6.0 "),
    (compile_pattern(r"\bWindows\*? ?XP\*?"), "Windows 5.1 "),
    (compile_pattern(r"\bWindows (\d{4}) Server\b"), r"Windows Server \1"),
    (
        compile_pattern(r"\bWindows Server (\d{4}),? R2\b|\bWindows Server (\d{4}) (?=.*\bR2\b)"),
        r"Windows Server \1\2 ",
    ),
)
"""Windows that have a name and no number, by the version of their kernel (NT)."""

_REWRITTEN = (
    *_WINDOWS_RELEASES,
    (compile_pattern(r"\bMicorsoft\b|\bMicrosoft\b|\bIBM\b|\bSUES\b"), " "),
    (compile_pattern(r"\bHP-?UX ?(?:11i)?[\w -]{0,60}?(?=B\.)B\."), "HP-UX "),
    (compile_pattern(r"\bSLES(\d)"), r"SLES \1"),
    (compile_pattern(r"\bSUSELinux\b|\bSu ?SE Linux(?= Enterprise)"), "SUSE Linux"),
    (compile_pattern(r"\bOpenSolaris\b"), "Solaris"),
    (compile_pattern(r"\bAIX ?(?:5L)?,? ?V(?=\d)"), "AIX "),
    (compile_pattern(r"\bAIX 5L\b"), "AIX "),
    (compile_pattern(r"\bOS X(?: Server)?,? v(?=\d)"), "OS X "),
    (compile_pattern(r"\((?:x86_|)?(?:32|64)[ -]?bits?\)|\b(?:32|64)[ -]?bits?(?: version| edition)?\b"), " "),
    (compile_pattern(r"\bfor AMD64/EM64T\b|\bfor (?:AMD64|EM64T|x86-64|x86_64)\b|\bEM64T\b|\bX64\b|\bx86\b"), " "),
    (compile_pattern(r"\bwith,? (?:Linux )?patch,? (?:Linux )?kernel \d{8}\b|\blinux-cbgm\b|\b6\.[01]\.\d{4}\b"), " "),
    (compile_pattern(r"\bwith (?:the )?patch(?:es)?\b.*?(?=,,|\bkernel,? \d\.[\d.]{4}|$)|\(see [^()]{1,60}\)"), " "),
    (compile_pattern(r"[+(] ?patch(?:es)?\b.*$|\(?\b(?:build )?s\d{1,2}[sx]_u\d\w{1,12}\b\)?"), " "),
    (compile_pattern(r"\b(?:with|updated (?:to|with)) (?:the )?[\w-]{0,12} ?,? ?Technology Level.*$"), " "),
    (compile_pattern(r"\b(?:updated to|with) Service Pack ?\d.*$"), " "),
    (compile_pattern(r"\bService Pack ?(\d)"), r" SP\1 "),
    (
        compile_pattern(r"\bon,? an? (?=x86_64|AMD64)|\bfor (?=x86_64)|\bSserver\b|\bAdvanced (?:Platform|Server)\b"),
        " ",
    ),
    (compile_pattern(r"\bkernel-(?=\d\.)"), "kernel "),
    (compile_pattern(r"\bBuild:? ?[\w.]{2,12}|\bN/A\b|\bw/"), " "),
    (compile_pattern(r"\b(?:Ultimate|Business|Home|Premium|Professional|Pro|Standard|Edition|Ent|with|update)\b"), " "),
)
_CHIPS = compile_pattern(r"\bc?[hc]hips?\b|\bx?hips?\b|\bprocessors?\b|\bCPUs?\b|\bsockets?\b")
_OTHER_UNITS = compile_pattern(
    r"\bcores?\b|\bCMUs?\b|\bCMPs?\b|\bboards?\b|\bblades?\b|\bcells?\b|\bnodes?\b|\bbooks?\b"
)
_REMARK = compile_pattern(r"\([^()]{3,80}\)")
_TURBO = compile_pattern(r"\bup to (\d(?:\.\d{1,3})?) ?GHz")
_TURBO_OFF = compile_pattern(r"\bturbo\b.{0,40}\b(?:disabled|off|not[ -]enabled|is not enabled)\b")
_BUS = compile_pattern(r"(?<![\w.])(\d{3,4}) ?(?:MHz|MT/s)?,? ?(?:system bus|front[ -]side bus|bus|FSB)\b")


@dataclass(frozen=True)
class Characteristics:
    """What the free text about a processor states; None where it does not.

    Units: `turbo_mhz` MHz, `bus_mts` MT/s of the front-side bus (its "MHz" are transfers). The text may say anything
    else as well, so complete means that one of the three was found.
    """

    turbo_mhz: float | None = None
    turbo_off: bool | None = None
    bus_mts: float | None = None
    complete: bool = False


def parse_characteristics(text: str) -> Characteristics:
    """Parse values such as `Intel Turbo Boost Technology up to 2.80 GHz` or `1333 MHz system bus`."""
    value = normalize(text)
    off = _TURBO_OFF.search(value) is not None
    turbo = None if off else _TURBO.search(value)
    bus = _BUS.search(value)
    return Characteristics(
        turbo_mhz=float(round(float(turbo[1]) * 1000)) if turbo else None,
        turbo_off=True if off else None,
        bus_mts=float(bus[1]) if bus else None,
        complete=bool(off or turbo or bus),
    )


def parse_older_operating_system(text: str) -> OperatingSystem:
    """Parse values such as `Windows Vista Ultimate w/ SP1 (64-bit)`: rewritten in today's wording, then parsed."""
    value = normalize(text)
    for pattern, replacement in _REWRITTEN:
        value = pattern.sub(replacement, value)
    return parse_operating_system(value)


def parse_older_orderable(text: str) -> Orderable:
    """Parse values such as `1 or 2 chips`; what counts cores, boards or blades says nothing of chips."""
    value = _REMARK.sub(" ", normalize(text))
    if _OTHER_UNITS.search(value):
        return Orderable()
    return parse_orderable(_CHIPS.sub(" ", value))
