"""The rules of each origin: from memory, from the store or from a fetch.

``cache`` has the entries in memory: the rules of an origin, and until when they are valid. If an
origin has no valid entry, a lookup reads its record in the store. If there is no valid record, the
lookup fetches robots.txt under a lease, which only one of the workers with the same store gets.
"""
