"""Operating system texts: generated ones round-trip in the order of words that vendors use."""

from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing.software import parse_operating_system

WORD = st.sampled_from(["Kernel ", "kernel version ", "kernel version, ", "Kernel", "Kerenl ", ""])
KERNEL = st.tuples(st.integers(2, 9), st.integers(0, 99), st.integers(0, 99), st.integers(0, 999))


@settings(max_examples=150, deadline=None)
@given(
    release=st.integers(10, 16),
    pack=st.integers(0, 9),
    kernel=KERNEL,
    word=WORD,
    late=st.booleans(),
    twice=st.booleans(),
)
def test_sles_round_trips(release, pack, kernel, word, late, twice):
    series, build = f"{kernel[0]}.{kernel[1]}", f"{kernel[0]}.{kernel[1]}.{kernel[2]}-{kernel[3]}-default"
    service = f" SP{pack}" if pack else ""
    place = f"{release} (x86_64){service}" if late else f"{release}{service} (x86_64)"
    system = parse_operating_system(
        f"SUSE Linux Enterprise Server {place}, {word}{build}{f', {build}' if twice else ''}"
    )
    assert system.complete
    assert (system.os_name, system.os_version, system.arch) == ("SLES", f"{release}.{pack}", "x86_64")
    assert (system.kernel, system.kernel_series) == (build, series)


@settings(max_examples=100, deadline=None)
@given(
    major=st.integers(6, 10),
    minor=st.none() | st.integers(0, 12),
    kernel=KERNEL,
    word=WORD,
    arch=st.sampled_from(["x86_64", "aarch64", "ppc64le"]),
    code_name=st.sampled_from(["", " (Maipo)", ", (Plow)", " release"]),
)
def test_rhel_round_trips(major, minor, kernel, word, arch, code_name):
    version = str(major) if minor is None else f"{major}.{minor}"
    build = f"{kernel[0]}.{kernel[1]}.{kernel[2]}-{kernel[3]}.el{major}"
    system = parse_operating_system(f"Red Hat Enterprise Linux {version}{code_name}, {word}{build}.{arch}")
    assert system.complete
    assert (system.os_name, system.os_version) == ("RHEL", version)
    assert (system.kernel, system.arch) == (build, arch)
