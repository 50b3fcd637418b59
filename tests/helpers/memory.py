"""How much memory a child process takes at its peak."""

# Code for the child. Where there is another way, not getrusage: its peak starts with that of the
# process that started this one, and a worker that has grown would hide what is measured.
PEAK = """
import pathlib, resource
def peak():
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
"""
