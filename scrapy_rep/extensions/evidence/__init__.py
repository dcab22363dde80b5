"""The evidence (REP_EVIDENCE): a line for each page and each dropped request.

The extension makes lines of the signals it receives. A thread writes them as JSON Lines or WARC.
"""

from scrapy_rep.extensions.evidence.extension import RobotsEvidence

__all__ = ["RobotsEvidence"]
