"""proxy -- a socket in front of a server's socket that can cut connections between two messages.

Messages of PostgreSQL's protocol begin with a letter and a length, but for the first one of a client. Those of all
connections and both directions are counted. When the count reaches `cut_at`, that message and all after it on its
connection are lost, once; what was before is delivered. After hush() nothing passes on the connections that there are,
in either direction, and they stay open; after hush(True) nothing passes on new ones, either.
"""
import os
import socket
import struct
import threading


class Proxy:
    def __init__(self, folder, target, cut_at):
        self.path = os.path.join(folder, ".s.PGSQL.5432")
        self.target = target
        self.cut_at = cut_at
        self.count = 0
        self.cuts = 0
        self.silences = 0
        self.dark = False
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                continue
            for source, to, first in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.forward, args=(source, to, first, self.silences), daemon=True).start()

    def hush(self, dark=False):
        self.dark = dark
        self.silences += 1

    def is_cut(self):
        with self.lock:
            self.count += 1
            cut = self.count == self.cut_at
            self.cuts += cut
            return cut

    def forward(self, source, to, first, silences):
        """Whole messages, one at a time. `silences`: how many there were when the connection was made."""
        data = b""
        try:
            while True:
                head = 4 if first else 5
                while len(data) < head or len(data) < (head - 4) + struct.unpack("!I", data[head - 4:head])[0]:
                    more = source.recv(65536)
                    if not more:
                        raise OSError
                    data += more
                size = (head - 4) + struct.unpack("!I", data[head - 4:head])[0]
                if not first and self.is_cut():
                    raise OSError
                if not self.dark and silences == self.silences:
                    to.sendall(data[:size])
                data, first = data[size:], False
        except OSError:
            for end in (source, to):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            source.close()

    def close(self):
        self.listener.close()
        os.unlink(self.path)
