# The settings of a fleet: many processes, on many machines, that share one queue of requests (of
# scrapy-redis) and one store of robots.txt (of scrapy-rep), both in the same Redis.
#
# pip install scrapy-redis scrapy-rep[redis]

import os

BOT_NAME = "example_project"

SPIDER_MODULES = ["example_project.spiders"]
NEWSPIDER_MODULE = "example_project.spiders"

USER_AGENT = "fleetbot/1.0 (the example fleet of scrapy-rep)"

# One Redis for all
REDIS_URL = os.environ.get("FLEET_REDIS", "redis://127.0.0.1:6379/0")

# The queue and the dupefilter of scrapy-redis; requests of sites that are down wait in Redis
SCHEDULER = "scrapy_redis.scheduler.Scheduler"
SCHEDULER_QUEUE_CLASS = "scrapy_rep.RobotsAwareRedisQueue"
DUPEFILTER_CLASS = "scrapy_redis.dupefilter.RFPDupeFilter"
SCHEDULER_PERSIST = True

# robots.txt: fetched once for the whole fleet
ADDONS = {"scrapy_rep.Addon": 500}
REP_STORE = os.environ.get("FLEET_STORE", REDIS_URL)

TELNETCONSOLE_ENABLED = False
FEED_EXPORT_ENCODING = "utf-8"
