require "base64"
require "json"
require "webrobots"

if ARGV.include?("--version")
  puts Webrobots::VERSION
  exit
end

# A crawler of several names can't be asked of it.
def answer(body, tokens, url)
  return {} if tokens.size != 1

  robots = WebRobots.new(tokens[0], http_get: ->(_) { body }, crawl_delay: :ignore)
  {
    allowed: robots.allowed?(url),
    sitemaps: robots.sitemaps(url),
    crawl_delay: robots.crawl_delay(url)
  }
rescue StandardError => error
  { error: error.inspect }
end

$stdout.sync = true
$stdin.each_line do |line|
  asked = JSON.parse(line)
  body = Base64.decode64(asked["body"]).force_encoding("UTF-8").scrub
  # It takes escaped URLs alone.
  url = asked["url"].gsub(/[^!-~]/) { |char| char.bytes.map { |byte| format("%%%02X", byte) }.join }
  puts JSON.generate(answer(body, asked["tokens"], url))
end
