# Scrapy settings for example_project project
#
# For simplicity, this file contains only settings considered important or
# commonly used. You can find more settings consulting the documentation:
#
#     https://docs.scrapy.org/en/latest/topics/settings.html
#     https://docs.scrapy.org/en/latest/topics/downloader-middleware.html
#     https://docs.scrapy.org/en/latest/topics/spider-middleware.html

BOT_NAME = "example_project"

SPIDER_MODULES = ["example_project.spiders"]
NEWSPIDER_MODULE = "example_project.spiders"

# Obey robots.txt rules: this one line is all that scrapy-rep needs
ADDONS = {"scrapy_rep.Addon": 500}


# Crawl responsibly by identifying yourself (and your website) on the user-agent.
# The groups of robots.txt that name "demobot" are ours.
USER_AGENT = "demobot/1.0 (the example project of scrapy-rep)"

# Concurrency and throttling settings
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1

# Disable Telnet Console (enabled by default)
TELNETCONSOLE_ENABLED = False

# Set settings whose default value is deprecated to a future-proof value
FEED_EXPORT_ENCODING = "utf-8"
