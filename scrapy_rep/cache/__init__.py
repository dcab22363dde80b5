"""What is known about each origin: from memory, from the store or from a fetch.

A request's origin is asked of ``cache``; what isn't known there becomes a flight, which looks it up
under a lease, and may fetch.
"""
