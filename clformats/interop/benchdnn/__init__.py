"""benchdnn's language for reorders: its options, batch files, status words and reports.

oneDNN's own tool for checking and timing its primitives has a command line that many input files
are written in. Here it drives this library's reorders: `parse` makes tasks of words, `run` an
outcome of a task, `report` lines of outcomes. docs/benchdnn.md says what is understood and what
differs.
"""
