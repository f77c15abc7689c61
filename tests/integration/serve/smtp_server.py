"""A small mail server for tests: SMTP with STARTTLS and AUTH as far as a client of a real one needs them."""

import base64
import contextlib
import socketserver
import ssl
import threading


class MailReceiver(socketserver.ThreadingTCPServer):
    """Keeps what it is sent in `mails`. `refusals`: how many it turns away first; `refused`: a recipient."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, certificate=None, *, login=None, refusals=0, refused=None):
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.context = None
        if certificate is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.login = login
        self.refusals = refusals
        self.refused = refused
        self.mails, self.logins, self.in_clear = [], [], []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def place(self):
        return f"localhost:{self.server_address[1]}"

    def close(self):
        self.shutdown()
        self.server_close()


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self):
        self.encrypted = False
        with contextlib.suppress(OSError):
            self.say("220 test")
            while line := self.rfile.readline(10_000):
                word, _, rest = line.decode().strip().partition(" ")
                if not self.encrypted:
                    self.server.in_clear.append(line)
                if getattr(self, f"do_{word.lower()}", self.do_other)(rest) is False:
                    return

    def say(self, *lines):
        text = [f"{each[:3]}-{each[4:]}" for each in lines[:-1]] + [lines[-1]]
        self.wfile.write("".join(f"{each}\r\n" for each in text).encode())

    def do_ehlo(self, _):
        more = ["250 STARTTLS"] if self.server.context and not self.encrypted else []
        more += ["250 AUTH PLAIN"] if self.server.login and self.encrypted else []
        self.say("250 test", *more, "250 8BITMIME")

    def do_starttls(self, _):
        self.say("220 go ahead")
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.encrypted = True

    def finish(self):
        with contextlib.suppress(OSError):
            super().finish()
        self.connection.close()

    def do_auth(self, rest):
        _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
        self.server.logins.append((user, password))
        self.say("235 welcome" if (user, password) == self.server.login else "535 who are you")

    def do_rcpt(self, rest):
        refused = self.server.refused is not None and self.server.refused in rest
        self.say("550 no such user" if refused else "250 fine")

    def do_data(self, _):
        self.say("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line)
        if self.server.refusals:
            self.server.refusals -= 1
            self.say("451 try later")
            return
        self.server.mails.append(b"".join(lines))
        self.say("250 taken")

    def do_quit(self, _):
        self.say("221 bye")
        return False

    def do_other(self, _):
        self.say("250 fine")
