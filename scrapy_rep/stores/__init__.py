"""Where records of origins live: one protocol, several places."""
