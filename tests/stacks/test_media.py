"""Scrapy's files and images pipelines, which download past the scheduler."""

from __future__ import annotations

import pytest

KINDS = {"files": "FilesPipeline", "images": "ImagesPipeline"}


@pytest.mark.parametrize("kind", ["files", pytest.param("images", marks=pytest.mark.needs("PIL"))])
def test_media(stack, kind):
    media = stack("scrapy")
    sites = media.sites("plain", "moved", "none", "down")
    media.crawl(
        sites,
        settings={
            "ITEM_PIPELINES": {f"scrapy.pipelines.{kind}.{KINDS[kind]}": 1},
            f"{kind.upper()}_STORE": str(media.folder / "media"),
            "MEDIA_ALLOW_REDIRECTS": True,
            "ITEM": {f"{kind[:-1]}_urls": sites.urls, kind: []},
        },
        urls=[sites.url("plain")],
        spider="MediaSpider",
    )
    media.check(sites, f"{kind} pipeline")
