"""What is known about each origin: from memory, from the store or from a fetch.

``cache`` holds what is known in memory. If an origin is not known, or its entry has expired, a
flight looks it up: in the store, else by a fetch under a lease.
"""
