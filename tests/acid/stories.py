"""All stories of the acid test, in the order of its tables."""

from __future__ import annotations

from . import stories_fetching, stories_of_the_demo, stories_politeness, stories_rules

ACID = (
    *stories_of_the_demo.STORIES,
    *stories_fetching.STORIES,
    *stories_rules.STORIES,
    *stories_politeness.STORIES,
)
CRAWL_ENDS = {
    "story": "the crawl ends",
    "shows": "no site keeps it from that",
    "clause": "decision, time limits",
    "by": "A crawl of sites that hang, drip or never end comes to its end.",
    "kind": "robots.txt",
    "needs": "",
}
"""What is asked with all stories at once."""
