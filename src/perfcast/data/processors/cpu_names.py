"""Names of CPU models: the join key, and the family, tier and suffix that a name contains."""

from __future__ import annotations

import re

VENDOR_WORDS = ("intel", "amd", "ibm", "oracle", "sun", "fujitsu", "huawei", "hisilicon", "ampere", "t-head", "zxic")
"""Names of vendors, which are dropped from the front of a key."""

_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.IGNORECASE)
_NOISE = re.compile(
    r"""
      \([^()]*\) | \[[^\[\]]*\]              # any bracketed remark
    | @\s*\d+(?:\.\d+)?\s*[gm]hz             # '@ 2.50GHz'
    | \b\d+-cores?\b                         # '64-Core'
    | ,?\s*\bwith\s+ipu\b.*                  # ARK's ', with IPU' variants are the same CPU model
    | \b(?:cpu|processor)s?\b
    """,
    re.VERBOSE,
)
_VENDOR = re.compile(rf"^(?:{'|'.join(VENDOR_WORDS)})\s+")
_VERSION = re.compile(r"(?<=[0-9])([al]?)v(?=[2-9]$)")
"""'E5-2620v4' is 'E5-2620 v4', 'E3-1240Lv5' is 'E3-1240L v5'; the version itself is part of the name."""

OLDER_RULES: tuple[tuple[str, str], ...] = (
    (r"pentium (4|d|extreme edition)( \d{3})?", "NetBurst"),
    (r"xeon 71\d\d[mn]", "NetBurst MP"),
    (r"pentium m \d{3}", "Pentium M"),
    (r"core duo t2\d{3}", "Yonah"),
    (r"core 2 (duo (e[46]\d{3}|t7\d{3}|x7\d{3})|extreme (x6800|x7[89]00|qx6\d{3})|quad q?x?6\d{3})", "Conroe"),
    (r"(core 2 duo x6800|core 2 quad qx6800|pentium dual-core e2\d{3}|celeron 4\d\d|xeon 30\d\d)", "Conroe"),
    (r"xeon x32\d\d", "Conroe"),
    (r"xeon 51\d\d( lv)?", "Woodcrest"),
    (r"xeon [elx]53\d\d", "Clovertown"),
    (r"xeon [elx]7[23]\d\d", "Tigerton"),
    (r"core 2 (duo (e[78]|p8|t[89]|su9)\d{2,3}|solo ulv su3\d{3}|quad q[89]\d{3})", "Wolfdale"),
    (r"core 2 extreme (mobile )?q?x9\d{3}", "Wolfdale"),
    (r"(pentium (e[56]\d00|su2700)|celeron e3\d00|xeon (e31|l31|[lx]33)\d\d)", "Wolfdale"),
    (r"xeon [elx]5[24]\d\d", "Harpertown"),
    (r"xeon [elx]74\d\d", "Dunnington"),
    (r"(core i7-9([2-5]0|60|65|75)|xeon w35\d\d)", "Bloomfield"),
    (r"(core i5-7[56]0s?|core i7-8[678]0[ks]?|core i7-940xm|xeon [lx]34[2-8]\d)", "Lynnfield"),
    (r"xeon [elwx]55\d\d", "Nehalem-EP"),
    (r"xeon [elx][67]5\d\d", "Nehalem-EX"),
    (r"(core i3-5\d0|core i5-6\d[01]|core i5-520e|core i7-610e|pentium g69[56]0|celeron g1101)", "Clarkdale"),
    (r"xeon l3406", "Clarkdale"),
    (r"(core i7-9[789]0x?|xeon w36\d\d)", "Gulftown"),
    (r"xeon [elx]56\d\d", "Westmere-EP"),
    (r"xeon e7-[248]8\d\dl?", "Westmere-EX"),
    (r"core i7-39\d\d[kx]", "Sandy Bridge-E"),
    (r"(core i\d-2\d{3}[a-z]*|pentium g[568]\d0t?|celeron g(4[4-7]|5[345])0t?)", "Sandy Bridge"),
    (r"xeon e3-12\d\dl?", "Sandy Bridge E3"),
    (r"core i7-49\d\d[kx]", "Ivy Bridge-E"),
    (r"(core i\d-3\d{3}[a-z]*|pentium g2\d{3}t?|celeron g16[123]0t?)", "Ivy Bridge"),
    (r"xeon e3-12\d\dl? v2", "Ivy Bridge E3"),
    (r"(core i\d-4\d{3}[a-z]*|pentium g3[234]\d0t?|celeron g18\d0t?)", "Haswell"),
    (r"xeon e3-12\d\dl? v3", "Haswell E3"),
    (r"(athlon 64 (x2 )?(fx-)?\d{2,4}\+?|athlon x2 [3-6]\d{3}\+|turion 64 x2 tl-\d\d)", "K8"),
    (r"opteron [128]\d\d( [hs]e)?", "Sledgehammer"),
    (r"opteron [128]2[12]\d( [hs]e)?", "Santa Rosa"),
    (r"(phenom x[34] \d{4}[be]?|athlon x2 7\d50)", "Agena"),
    (r"(opteron [28]3[456]\d( [hs]e)?|opteron 135\d)", "Barcelona"),
    (r"(phenom ii x[2346] b?\d{2,4}t?|athlon ii x[234] \d{3})", "Deneb"),
    (r"opteron [28]3[789]\d( [ehs]e)?", "Shanghai"),
    (r"opteron [28]4\d\d( [ehs]e)?", "Istanbul"),
    (r"opteron 61\d\d( [hs]e)?", "Magny-Cours"),
    (r"opteron 41\d\d( [eh]e)?", "Lisbon"),
    (r"fx-8[12]\d0", "Zambezi"),
    (r"opteron 62\d\d( [hs]e)?", "Interlagos"),
    (r"opteron 42\d\d( [eh]e)?", "Valencia"),
    (r"opteron 32\d\d( he)?", "Zurich"),
    (r"a10-5[78]00[bk]?", "Trinity"),
    (r"opteron 63\d\d(p| [hs]e)?", "Abu Dhabi"),
    (r"opteron 43\d\d( [eh]e)?", "Seoul"),
    (r"opteron 33\d\d( [eh]e)?", "Delhi"),
    (r"power5\+", "POWER5+"),
    (r"power6", "POWER6"),
    (r"power6\+", "POWER6+"),
    (r"power7", "POWER7"),
    (r"power7\+", "POWER7+"),
    (r"sparc64 vi", "SPARC64 VI"),
    (r"sparc64 vii", "SPARC64 VII"),
    (r"sparc64 vii\+", "SPARC64 VII+"),
    (r"sparc64 x", "SPARC64 X"),
    (r"ultrasparc (iii|iii cu|iiii)", "UltraSPARC III"),
    (r"ultrasparc t2( plus)?", "UltraSPARC T2"),
    (r"sparc t3", "SPARC T3"),
    (r"sparc t5", "SPARC T5"),
    (r"itanium 2", "Madison"),
    (r"itanium( 2)? 90\d\d", "Montecito"),
    (r"itanium( 2)? 91\d\d[mn]", "Montvale"),
    (r"itanium 93\d\d", "Tukwila"),
)
"""Pattern of the whole key -> family, tried in order."""

_RULES: tuple[tuple[str, str], ...] = (
    # Xeon Scalable: the second digit is the generation; H and HL at x3 is Cooper Lake, not Ice Lake.
    (r"xeon platinum 92\d\d", "Cascade Lake-AP"),
    (r"xeon (bronze|silver|gold|platinum) \d1\d\d[a-z]*", "Skylake-SP"),
    (r"xeon (bronze|silver|gold|platinum) \d2\d\d[a-z]*", "Cascade Lake-SP"),
    (r"xeon (gold|platinum) \d3\d\dhl?", "Cooper Lake"),
    (r"xeon (silver|gold|platinum) \d3\d\d[a-z]*", "Ice Lake-SP"),
    (r"xeon (bronze|silver|gold|platinum) \d4\d\d[a-z]*\+?", "Sapphire Rapids"),
    (r"xeon (bronze|silver|gold|platinum) \d5\d\d[a-z]*\+?", "Emerald Rapids"),
    (r"xeon (cpu )?max 94\d\d", "Sapphire Rapids HBM"),
    (r"xeon( 6)? 6\d\d\d[a-z]?e", "Sierra Forest"),
    (r"xeon( 6)? 6\d\d\dp", "Granite Rapids"),
    (r"xeon e-21\d\d[a-z]*", "Coffee Lake E"),
    (r"xeon e-22\d\d[a-z]*", "Coffee Lake Refresh E"),
    (r"xeon e-23\d\d[a-z]*", "Rocket Lake E"),
    (r"xeon e-24\d\d[a-z]*", "Raptor Lake E"),
    (r"xeon e3-\d{4}[a-z]* v5", "Skylake E3"),
    (r"xeon e3-\d{4}[a-z]* v6", "Kaby Lake E3"),
    (r"xeon e5-\d{4}[a-z]* v4", "Broadwell-EP"),
    (r"xeon e5-\d{4}[a-z]* v3", "Haswell-EP"),
    (r"xeon e5-[12]4\d\d[a-z]* v2", "Ivy Bridge-EN"),
    (r"xeon e5-\d{4}[a-z]* v2", "Ivy Bridge-EP"),
    (r"(xeon e5-[12]4\d\d[a-z]*|pentium 140[37])", "Sandy Bridge-EN"),
    (r"xeon e5-\d{4}[a-z]*", "Sandy Bridge-EP"),
    (r"xeon e7-\d{4}[a-z]* v4", "Broadwell-EX"),
    (r"xeon d-15\d\d[a-z]*", "Broadwell-DE"),
    (r"xeon d-(17|27)\d\d[a-z]*", "Ice Lake-D"),
    (r"xeon w-21\d\d[a-z]*", "Skylake-W"),
    (r"xeon w-22\d\d[a-z]*", "Cascade Lake-W"),
    (r"xeon w\d-[23]4\d\dx?", "Sapphire Rapids-W"),
    (r"(core i\d-6\d{3}[a-z]*|(pentium|celeron) g(39[0-2]0|44\d0|45[0-4]0)[a-z]*)", "Skylake"),
    (r"(core i\d-7\d{3}[a-z]*|(pentium|celeron) g(39[35]0|4560|46\d0)[a-z]*)", "Kaby Lake"),
    (r"(core i\d-8\d{3}[a-z]*|celeron g49[02]0t?|pentium gold g5(400|500|600)t?)", "Coffee Lake"),
    (r"(core i\d-9\d{3}[a-z]*|celeron g49[35]0t?|pentium gold g5(420|620)t?)", "Coffee Lake Refresh"),
    (r"(core i\d-10\d{3}[a-z]*|pentium gold g6\d{3}[a-z]*)", "Comet Lake"),
    (r"(core i\d-12\d{3}[a-z]*|pentium gold g7\d{3}[a-z]*)", "Alder Lake"),
    *OLDER_RULES,
    # EPYC: the last digit of the number is the generation, the first the series; letters are variants.
    (r"epyc 7[0-9f][0-9]1p?", "Naples"),
    (r"epyc 7([0-9f][0-9]|h1)2p?", "Rome"),
    (r"epyc 7\d\d3x", "Milan-X"),
    (r"epyc 7[0-9][0-9f]3p?", "Milan"),
    (r"epyc 97[35]4", "Bergamo"),
    (r"epyc 9\d\d4x", "Genoa-X"),
    (r"epyc 9\d\d4[fps]?", "Genoa"),
    (r"epyc 8\d\d4pn?", "Siena"),
    (r"epyc 4\d\d4px?", "EPYC 4004"),
    (r"epyc 9(645|745|825|845|965)", "Turin Dense"),
    (r"epyc 9\d\d5[fp]?", "Turin"),
    (r"ryzen \d 5\d{3}x(3d)?", "Vermeer"),
    (r"ryzen \d 7\d{3}x(3d)?", "Raphael"),
    (r"ryzen threadripper pro 39\d\dwx", "Castle Peak PRO"),
    (r"altra max m\d+-\d+", "Altra Max"),
    (r"altra q\d+-\d+", "Altra"),
    (r"ampereone a\d+-\d+x?", "AmpereOne"),
    (r"kunpeng 920( \d+)?", "Kunpeng 920"),
    (r"yitian 710", "Yitian 710"),
    (r"power8", "POWER8"),
    (r"power9", "POWER9"),
    (r"power10", "POWER10"),
    (r"sparc64 xii", "SPARC64 XII"),
    (r"sparc m7", "SPARC M7"),
    (r"ultrasparc[- ]iv\+", "UltraSPARC IV+"),
)
_FAMILY_PATTERNS = tuple((re.compile(pattern), family) for pattern, family in _RULES)
_TIER = re.compile(
    r"xeon (?:cpu )?(bronze|silver|gold [56]|platinum|max)|xeon(?: 6)? (6[0-9])\d\d[a-z]"
    r"|(core i\d|celeron|pentium gold|pentium|ryzen (?:threadripper pro|\d))"
)
_SUFFIX = re.compile(r"\d([a-z]{0,3}\+?)(?: v\d)?$")
_EPYC_MIDDLE = re.compile(r"epyc 7([fh])\d2$|epyc 7\d(f)3$")


def cpu_model_key(name: str) -> str:
    """Return the join key of a processor name: vendor word, marks, clock and core count removed, case folded.

    '+', suffix letters and 'v4' stay, because they distinguish CPU models (8592+ is not 8592V). The key of a key is the
    key itself. A name of noise or marks alone keeps its folded text, so that no key is empty.
    """
    folded = " ".join(_MARKS.sub(" ", name).casefold().split())
    key, before = folded, None
    while key != before:
        before = key
        key = " ".join(_NOISE.sub(" ", key).split()).strip(" ,")
        key = _VERSION.sub(r"\1 v", _VENDOR.sub("", key))
    return key or folded or " ".join(name.casefold().split())


def cpu_model_id(key: str) -> str:
    """Return the key as one word, for file names and reports."""
    return key.replace(" ", "-")


def list_rule_families() -> tuple[str, ...]:
    """Return the family of every naming rule, in the order of the rules."""
    return tuple(family for _, family in _RULES)


def find_family(key: str) -> str | None:
    """Return the family of a CPU model by its key, None where no rule names it."""
    return next((family for pattern, family in _FAMILY_PATTERNS if pattern.fullmatch(key)), None)


def find_tier(key: str) -> str | None:
    """Return the market tier within the series ('gold 6', 'platinum', 'core i3'), None in a series without tiers."""
    match = _TIER.search(key)
    return next((group for group in match.groups() if group), None) if match else None


def find_suffix(key: str) -> str:
    """Return the letters after the model number ('y+', 'p', 'hl'), 'none' without letters."""
    middle = _EPYC_MIDDLE.search(key)
    if middle:
        return middle[1] or middle[2]
    match = _SUFFIX.search(key)
    return (match[1] if match else "") or "none"
