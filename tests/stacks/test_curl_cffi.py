"""scrapy-curl-cffi: pages by libcurl, with the fingerprint of a browser."""

from __future__ import annotations

import pytest

from tests.stacks.stack import EVERY

pytestmark = pytest.mark.needs("scrapy_curl_cffi")

HANDLER = "scrapy_curl_cffi.handlers.CurlCffiDownloadHandler"
SETTINGS = {"DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER}}
META = {"curl_cffi_options": {"impersonate": "chrome"}}
ON_ALL = {
    "DOWNLOADER_MIDDLEWARES": {"tests.stacks.parts.MetaOnAll": 543},
    "META_ON_ALL": META,
}
SITES = (*EVERY, "big")
MIB = 1024


def test_meta_of_each_page(stack):
    curl = stack("scrapy-curl-cffi", browser="libcurl")
    sites = curl.sites(*SITES)
    curl.crawl(sites, settings=SETTINGS, meta=META)
    curl.check(sites, "meta of each page; a robots.txt of 40 MB")


def test_meta_on_all_requests(stack):
    curl = stack("scrapy-curl-cffi", browser="libcurl")
    sites = curl.sites(*SITES)
    told = curl.crawl(sites, settings={**SETTINGS, **ON_ALL})
    curl.check(sites, f"meta on all ({told['peak_kib'] // MIB} MiB)")
