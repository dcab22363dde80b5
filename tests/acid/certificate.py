"""A certificate for loopback, which the program openssl makes."""

import subprocess

CONFIG = """
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = localhost
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign, cRLSign
subjectKeyIdentifier = hash
subjectAltName = DNS:localhost, {addresses}
"""


def make_certificate(path, addresses=("127.0.0.1",)):
    """Write a key, and a certificate that is signed by itself, to *path*, and return that."""
    config = path.with_suffix(".cnf")
    names = ", ".join(f"IP:{each}" for each in dict.fromkeys(addresses))
    config.write_text(CONFIG.format(addresses=names))
    command = "openssl req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
    made = subprocess.run(
        [*command.split(), "-config", config, "-keyout", "-", "-out", "-"],
        capture_output=True,
        check=True,
    )
    path.write_bytes(made.stdout)
    return path
