"""What is known of each origin: memory, then the store, then one fetch.

A request's origin is asked of ``cache``; what isn't known there becomes a flight, which looks it up
under a lease, and may fetch.
"""
