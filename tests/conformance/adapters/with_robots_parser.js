const robotsParser = require("robots-parser");
const { serve } = require("./pipe.js");

serve((body, token, url) => {
  const robots = robotsParser(new URL("/robots.txt", url).href, body.toString());
  const line = robots.getMatchingLineNumber(url, token);
  return {
    allowed: robots.isAllowed(url, token),
    line: line > 0 ? line : null,
    sitemaps: robots.getSitemaps(),
    crawl_delay: robots.getCrawlDelay(token) ?? null,
  };
}, "robots-parser");
