"""From released numbers to models. Nothing here sees a record, so nothing here costs privacy."""
