// simplecrawler, which follows all links: node simplecrawler_acid.cjs URL
const Crawler = require("simplecrawler");

const crawler = new Crawler(process.argv[2]);
crawler.userAgent = "demobot/1.0";
crawler.filterByDomain = false;
crawler.ignoreInvalidSSL = true;
crawler.start();
