"""Subcommands of `graft`, one file each."""
