"""The commands of `privfield`, one file each; heavy modules are imported when a command runs."""
