"""Extensions: the report and the evidence. They only receive signals."""
