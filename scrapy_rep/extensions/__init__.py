"""Extensions: the report, the evidence and the periodic log line. They only receive signals."""
