const robotsParser = require("robots-parser");
const { serve } = require("./pipe.js");

serve((body, token, url) => {
  const robots = robotsParser(new URL("/robots.txt", url).href, body.toString());
  return {
    allowed: robots.isAllowed(url, token),
    line: robots.getMatchingLineNumber(url, token) > 0 ? robots.getMatchingLineNumber(url, token) : null,
    sitemaps: robots.getSitemaps(),
    crawl_delay: robots.getCrawlDelay(token) ?? null,
  };
}, "robots-parser");
