"""Other spellings of cache and operating system columns, brought to the grammar that their parsers read."""

from __future__ import annotations

from perfcast.data.parsing.operating_system import OperatingSystem, parse_operating_system
from perfcast.data.parsing.text_normalization import compile_pattern, normalize

_CACHE = tuple(
    (compile_pattern(pattern), replacement)
    for pattern, replacement in (
        (r"\(\s?(I ?\+ ?D|I|D)\s?\)", r" \1 "),
        (r"\bI ?\+ ?D\b", "I+D"),
        (r"(?<=\d)M\b", " MB"),
        (r"(?<=\d)([KM]B)", r" \1"),
        (r"\bmicro-ops\b", "KB"),
        (r"\bK KB\b", "KB"),
        (r"\bKB on chip per\b", "on chip per"),
        (r"\bL3 cache\b", "I+D"),
        (r"\b([KM]B) (?=(?:on chip )?per\b)", r"\1 I+D "),
        (r"\b(I\+D|D) ?(?:KB )?per\b", r"\1 on chip per"),
        (r"\b(I\+D|D)on chip\b", r"\1 on chip"),
        (r"\bon chip (?:/ ?)?(core|chip)\b", r"on chip per \1"),
        (r"\bper dual core\b", "per 2 cores"),
        (r"\b(\d{1,2})-core\b", r"\1 cores"),
        (r"\bper (\d{1,2}) core\b", r"per \1 cores"),
        (r"\b(?:shared|shard) per\b", "shared /"),
        (r"\b(?:shard|shared) ?/ ?(\d{1,2}) ?cores\b", r"shared / \1 cores"),
        (r"\((\d{1,4} MB) / (\d{1,2}) cores?\)", r", \1 shared / \2 cores"),
        (r"\bchip[sp]\b", "chip"),
        (r", NUCA$", ""),
    )
)
_WINDOWS = compile_pattern(r"\bWindows\b")
_YEAR = compile_pattern(r"\b(2003|2008|2012|2016|2019|2022|2025)\b")
_RELEASE_2 = compile_pattern(r"\bR2\b")


def tidy_cache(text: str) -> str:
    """Return a cache value such as `32KB(I)+48KB(D)on chip per core` as `32 KB I + 48 KB D on chip per core`."""
    value = normalize(text)
    for pattern, replacement in _CACHE:
        value = " ".join(pattern.sub(replacement, value).split())
    return value


def parse_any_operating_system(text: str) -> OperatingSystem:
    """Parse an operating system and its version, Windows in any order of its words: `Windows 2008 Server R2 SP1`."""
    value = normalize(text)
    if not _WINDOWS.search(value):
        return parse_operating_system(value)
    year = _YEAR.search(value)
    version = f"{year[1]} R2" if year and _RELEASE_2.search(value) else year[1] if year else None
    return OperatingSystem("Windows Server", version, complete=version is not None)
