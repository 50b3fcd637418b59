"""Public networks and the outcomes on their nodes: from any source to a coupling matrix."""
