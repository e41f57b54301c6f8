"""Description of this machine from its system and firmware, without anything that identifies it."""

from perfcast.microbench.hardware_info.hardware_reader import read_hardware
from perfcast.microbench.hardware_info.readings import HardwareInfo, Reading

__all__ = ["HardwareInfo", "Reading", "read_hardware"]
