"""Items that say what is known of their pages."""

from dataclasses import dataclass, field


@dataclass
class Declared:
    url: str = ""
    robots_noindex: bool = False
    robots_usage: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Frozen:
    """An item that can't be marked."""

    url: str = ""
    robots_noindex: bool = False
    robots_usage: dict = field(default_factory=dict)
