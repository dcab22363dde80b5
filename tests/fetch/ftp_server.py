"""An FTP server of one folder on a free port, which it prints; logins are noted in the folder."""

import logging
import sys
from pathlib import Path

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer

FOLDER = Path(sys.argv[1])


class Handler(FTPHandler):
    def on_login(self, username):
        with (FOLDER / "logins").open("a") as logins:
            logins.write(username + "\n")


authorizer = DummyAuthorizer()
authorizer.add_anonymous(str(FOLDER))
authorizer.add_user("account", "password", str(FOLDER))
Handler.authorizer = authorizer
logging.disable()
server = FTPServer(("127.0.0.1", 0), Handler)
print(server.socket.getsockname()[1], flush=True)
server.serve_forever(handle_exit=False)
