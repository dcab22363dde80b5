"""Extensions: the report and the evidence. They change nothing in a crawl."""
