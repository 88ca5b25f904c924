"""The subcommands of `strandline`, a module each.

A module here has the command's flags and its help, and calls rooms below. It imports nothing heavy at its
top: every module is loaded for `strandline --help`.
"""
