"""They listen to the signals of a crawl, write and count, and change nothing.

What is written as the crawl goes is made into ``lines``, which a thread writes (``writing``).
"""
