"""The evidence (REP_EVIDENCE): a line for each page and each dropped request.

A line shows what was decided on a request, and by which robots.txt. The extension makes lines from
the signals that it receives. A thread writes them as JSON Lines or WARC.
"""
