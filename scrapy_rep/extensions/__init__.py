"""Extensions: the report and the evidence, which change nothing, and the hook for browsers."""
