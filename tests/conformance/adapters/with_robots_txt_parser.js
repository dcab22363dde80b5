const robotsTxtParser = require("robots-txt-parser");
const { serve } = require("./pipe.js");

serve((body, token, url) => {
  const robots = robotsTxtParser({ userAgent: token });
  robots.parseRobots(url, body.toString());
  return {
    allowed: robots.canCrawlSync(url),
    sitemaps: robots.getSitemapsSync(),
    crawl_delay: robots.getCrawlDelaySync() || null,
  };
}, "robots-txt-parser");
