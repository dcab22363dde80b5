"""The recipes of Google's how-to for site owners: SPEC T-1."""

import pytest

from scrapy_rep.protocol import RobotsTxt

NOBODY_BUT = "User-agent: {}\nAllow: /\n\nUser-agent: *\nDisallow: /"
RECIPES = [
    ("User-agent: *\nDisallow: /", ["a /", "a /x"], []),
    ("User-agent: *\nDisallow: /calendar/\nDisallow: /junk/", ["a /calendar/x", "a /junk/"], ["a /junk"]),
    (NOBODY_BUT.format("Googlebot-news"), ["googlebot /x"], ["googlebot-news /x"]),
    ("User-agent: Unnecessarybot\nDisallow: /\n\nUser-agent: *\nAllow: /", ["unnecessarybot /x"], ["a /x"]),
    ("User-agent: *\nDisallow: /private_file.html", ["a /private_file.html"], ["a /other.html"]),
    (
        "User-agent: Googlebot-Image\nDisallow: /afbeeldingen/honden.jpg",
        ["googlebot-image /afbeeldingen/honden.jpg"],
        ["googlebot-image /afbeeldingen/katten.jpg", "googlebot /afbeeldingen/honden.jpg"],
    ),
    ("User-agent: Googlebot-Image\nDisallow: /", ["googlebot-image /x.jpg"], ["googlebot /x.jpg"]),
    ("User-agent: Googlebot\nDisallow: /*.gif$", ["googlebot /a/b.gif"], ["googlebot /b.gif?x"]),
    (NOBODY_BUT.format("Mediapartners-Google"), ["a /x"], ["mediapartners-google /x"]),
    ("User-agent: Googlebot\nDisallow: /*.xls$", ["googlebot /a.xls"], ["googlebot /a.xlsx", "a /a.xls"]),
    (
        "# 1\nUser-agent: Googlebot\nDisallow: /nogooglebot/\n\n# 2\nUser-agent: *\nAllow: /\n\n"
        "Sitemap: http://www.example.com/sitemap.xml\n",
        ["googlebot /nogooglebot/x"],
        ["googlebot /", "a /"],
    ),
    (
        "User-agent: googlebot\nDisallow: /directory1/\nDisallow: /directory2/\n"
        "Allow: /directory2/subdirectory1/\n\nUser-agent: anothercrawler\nDisallow: /",
        ["googlebot /directory1/x", "googlebot /directory2/x", "anothercrawler /x"],
        ["googlebot /directory2/subdirectory1/x", "a /directory1/x"],
    ),
]  # fmt: skip


@pytest.mark.spec("T-1")
@pytest.mark.parametrize(("robots", "disallowed", "allowed"), RECIPES)
def test_recipes_of_the_how_to(robots, disallowed, allowed):
    parsed = RobotsTxt.parse(robots.encode())
    for case in (*disallowed, *allowed):
        token, path = case.split()
        verdict = parsed.verdict(f"https://example.com{path}", token)
        assert verdict.allowed is (case in allowed), case
