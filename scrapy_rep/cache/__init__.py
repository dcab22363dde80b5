"""The rules of each origin: from memory, from the store or from a fetch."""
