"""Whether a request may leave now, and why not; and the last check before it is sent.

``admission.py`` is asked before a request leaves. Each reason why a request has to wait is one
module. ``wire.py`` asks again when the request is handed to its download handler.
"""
