"""The list of known bugs, and how a finding gets the name of one."""
