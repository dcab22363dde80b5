"""The recipes of Google's how-to for site owners: SPEC T-1."""

import pytest

from scrapy_rep.protocol import RobotsTxt

RECIPES = [
    ("block_all", "User-agent: *\nDisallow: /", [("a", "/", False), ("a", "/x", False)]),
    (
        "block_directories",
        "User-agent: *\nDisallow: /calendar/\nDisallow: /junk/",
        [("a", "/calendar/x", False), ("a", "/junk/", False), ("a", "/junk", True)],
    ),
    (
        "one_crawler_allowed",
        "User-agent: Googlebot-news\nAllow: /\n\nUser-agent: *\nDisallow: /",
        [("googlebot-news", "/x", True), ("googlebot", "/x", False)],
    ),
    (
        "one_crawler_blocked",
        "User-agent: Unnecessarybot\nDisallow: /\n\nUser-agent: *\nAllow: /",
        [("unnecessarybot", "/x", False), ("a", "/x", True)],
    ),
    (
        "one_page",
        "User-agent: *\nDisallow: /private_file.html",
        [("a", "/private_file.html", False), ("a", "/other.html", True)],
    ),
    (
        "one_image",
        "User-agent: Googlebot-Image\nDisallow: /afbeeldingen/honden.jpg",
        [
            ("googlebot-image", "/afbeeldingen/honden.jpg", False),
            ("googlebot-image", "/afbeeldingen/katten.jpg", True),
            ("googlebot", "/afbeeldingen/honden.jpg", True),
        ],
    ),
    (
        "all_images",
        "User-agent: Googlebot-Image\nDisallow: /",
        [("googlebot-image", "/x.jpg", False), ("googlebot", "/x.jpg", True)],
    ),
    (
        "one_file_type",
        "User-agent: Googlebot\nDisallow: /*.gif$",
        [("googlebot", "/a/b.gif", False), ("googlebot", "/b.gif?x", True)],
    ),
    (
        "all_but_the_advertising_crawler",
        "User-agent: *\nDisallow: /\n\nUser-agent: Mediapartners-Google\nAllow: /",
        [("mediapartners-google", "/x", True), ("a", "/x", False)],
    ),
    (
        "endings",
        "User-agent: Googlebot\nDisallow: /*.xls$",
        [("googlebot", "/a.xls", False), ("googlebot", "/a.xlsx", True), ("a", "/a.xls", True)],
    ),
    (
        "first_example",
        "# 1\nUser-agent: Googlebot\nDisallow: /nogooglebot/\n\n# 2\nUser-agent: *\nAllow: /\n\n"
        "Sitemap: http://www.example.com/sitemap.xml\n",
        [("googlebot", "/nogooglebot/x", False), ("googlebot", "/", True), ("a", "/", True)],
    ),
    (
        "second_example",
        "User-agent: googlebot\nDisallow: /directory1/\nDisallow: /directory2/\n"
        "Allow: /directory2/subdirectory1/\n\nUser-agent: anothercrawler\nDisallow: /",
        [
            ("googlebot", "/directory1/x", False),
            ("googlebot", "/directory2/x", False),
            ("googlebot", "/directory2/subdirectory1/x", True),
            ("anothercrawler", "/x", False),
            ("a", "/directory1/x", True),
        ],
    ),
]


@pytest.mark.spec("T-1")
@pytest.mark.parametrize(
    ("robots", "token", "path", "allowed"),
    [
        pytest.param(robots, *case, id=f"{name}-{case[0]}{case[1]}")
        for name, robots, cases in RECIPES
        for case in cases
    ],
)
def test_recipes_of_the_how_to(robots, token, path, allowed):
    url = f"https://example.com{path}"
    assert RobotsTxt.parse(robots.encode()).verdict(url, token).allowed is allowed
