const { Readable } = require("stream");
const guard = require("robots-txt-guard");
const parse = require("robots-txt-parse");
const { serve } = require("./pipe.js");

serve(async (body, token, url) => {
  const parsed = await parse(Readable.from([body]));
  const { pathname, search } = new URL(url);
  const sitemaps = parsed.extensions.filter((each) => each.extension === "sitemap");
  return {
    allowed: guard(parsed).isAllowed(token, pathname + search),
    sitemaps: sitemaps.map((each) => each.value),
  };
}, "robots-txt-guard");
