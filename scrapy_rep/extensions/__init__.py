"""The report, the evidence and the periodic log line. They only receive signals.

What is written as the crawl goes is made into ``lines``, which a thread writes (``writing``).
"""
