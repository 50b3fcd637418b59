"""What a terminal shows: bars, colours, exit codes."""
