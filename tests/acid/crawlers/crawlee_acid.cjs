// Crawlee for JavaScript, which follows all links: node crawlee_acid.cjs URL
const { CheerioCrawler } = require("crawlee");

new CheerioCrawler({
  respectRobotsTxtFile: { userAgent: "demobot" },
  ignoreSslErrors: true,
  preNavigationHooks: [
    (_, options) => {
      options.headers = { "User-Agent": "demobot/1.0" };
      options.useHeaderGenerator = false;
    },
  ],
  requestHandler: ({ enqueueLinks }) => enqueueLinks({ strategy: "all" }),
}).run(process.argv.slice(2));
