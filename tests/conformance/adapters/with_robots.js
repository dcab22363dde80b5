const { RobotsParser } = require("robots");
const { serve } = require("./pipe.js");

serve(async (body, token, url) => {
  const robots = new RobotsParser();
  robots.parse(body.toString().split(/\r\n|\r|\n/));
  const { pathname, search } = new URL(url);
  const delay = robots.getCrawlDelay(token);
  return {
    allowed: robots.canFetchSync(token, pathname + search),
    sitemaps: await new Promise((found) => robots.getSitemaps(found)),
    crawl_delay: delay ? Number(delay) : null,
  };
}, "robots");
