"""The acid test: small sites on loopback for crawlers of any kind, judged by what reaches them.

It needs Python's standard library and the program openssl. README.md tells how to run it.
"""
