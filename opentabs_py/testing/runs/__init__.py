"""How a run treats its tests: repeated, retried, in shards, paused at failures."""
