"""From any source to coded columns, in batches; counting; per-person limits."""
