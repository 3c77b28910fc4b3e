"""OpenCL C to programs: built, kept on disk, and tried first in a process of its own."""
