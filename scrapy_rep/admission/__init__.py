"""Whether a request may leave now, and may be sent now; and why not."""
