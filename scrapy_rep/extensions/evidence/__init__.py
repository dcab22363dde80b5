"""Evidence of what was obeyed, a line for each page and each drop: REP_EVIDENCE.

The extension makes lines of what it hears, a thread writes them: as JSON Lines, or as WARC.
"""

from scrapy_rep.extensions.evidence.extension import RobotsEvidence

__all__ = ["RobotsEvidence"]
