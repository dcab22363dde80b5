"""scrapy-impersonate and scrapy-curl-cffi: pages by libcurl, with the fingerprint of a browser."""

from __future__ import annotations

import pytest

from tests.stacks.stack import EVERY

PACKAGES = [
    pytest.param(
        "scrapy-impersonate",
        "scrapy_impersonate.ImpersonateDownloadHandler",
        {"impersonate": "chrome"},
        marks=pytest.mark.needs("scrapy_impersonate"),
    ),
    pytest.param(
        "scrapy-curl-cffi",
        "scrapy_curl_cffi.handlers.CurlCffiDownloadHandler",
        {"curl_cffi_options": {"impersonate": "chrome"}},
        marks=pytest.mark.needs("scrapy_curl_cffi"),
    ),
]
SITES = (*EVERY, "big")
MIB = 1024


@pytest.mark.parametrize(("package", "handler", "meta"), PACKAGES)
def test_meta_of_each_page(stack, package, handler, meta):
    curl = stack(package, browser="libcurl")
    sites = curl.sites(*SITES)
    settings = {"DOWNLOAD_HANDLERS": {"http": handler, "https": handler}}
    curl.crawl(sites, settings=settings, meta=meta)
    curl.check(sites, "meta of each page; a robots.txt of 40 MB")


@pytest.mark.parametrize(("package", "handler", "meta"), PACKAGES)
def test_meta_on_all_requests(stack, package, handler, meta):
    curl = stack(package, browser="libcurl")
    sites = curl.sites(*SITES)
    settings = {
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "DOWNLOADER_MIDDLEWARES": {"tests.stacks.parts.MetaOnAll": 543},
        "META_ON_ALL": meta,
    }
    told = curl.crawl(sites, settings=settings)
    curl.check(sites, f"meta on all ({told['peak_kib'] // MIB} MiB)")
