"""cluster -- a private PostgreSQL server for tests: made in a temporary folder, gone afterwards.

The server listens on a socket in that folder and nowhere else, with fsync on. PostgreSQL refuses to run as
root: then it runs as the user postgres, or nobody. A second process, the guardian, waits for the end of a
pipe that the process with the Cluster holds: however that process ends, the guardian stops the server and
removes the folder.
"""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

SETTINGS = {
    "listen_addresses": "''",
    "fsync": "on",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "logging_collector": "off",
}


class Missing(Exception):
    """There is no PostgreSQL, or no user to run it as."""


def binaries():
    """The folder with initdb and pg_ctl; the newest version."""
    found = shutil.which("initdb")
    folders = [os.path.dirname(os.path.realpath(found))] if found else []
    folders += sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda f: int(f.split("/")[4]), reverse=True)
    for folder in folders:
        if os.access(os.path.join(folder, "pg_ctl"), os.X_OK):
            return folder
    raise Missing("PostgreSQL is not installed: apt-get install postgresql")


def server_user():
    """Whom the server runs as; None: as ourselves."""
    if os.getuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Missing("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


class Cluster:
    """with Cluster() as c: c.url is the address of an empty database."""

    def __init__(self, settings=None):
        self.bin = binaries()
        self.user = server_user()
        self.settings = {**SETTINGS, **(settings or {})}
        # A socket's path is short, whatever TMPDIR says.
        self.folder = tempfile.mkdtemp(prefix="heddle-pg-", dir="/tmp")
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "log")
        os.chmod(self.folder, 0o755)
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self._guard()

    @property
    def url(self):
        return "postgresql://postgres@/postgres?host=" + self.folder

    def _guard(self):
        """Forks the guardian."""
        read_end, self.pipe = os.pipe()
        os.set_inheritable(self.pipe, False)
        self.guardian = os.fork()
        if self.guardian:
            os.close(read_end)
            return
        os.close(self.pipe)
        os.setsid()  # what interrupts the tests does not interrupt it
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.read(read_end, 1)  # returns when every process that holds the other end is gone
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)

    def _run(self, program, *arguments):
        kind = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        return subprocess.run([os.path.join(self.bin, program), *arguments], cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, close_fds=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}, **kind)

    def _must(self, program, *arguments):
        done = self._run(program, *arguments)
        if done.returncode:
            log = open(self.log, encoding="utf-8").read() if os.path.exists(self.log) else ""
            raise RuntimeError("%s failed:\n%s\n%s" % (program, done.stdout, log[-2000:]))

    def make(self):
        self._must("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as conf:
            for name, value in {**self.settings, "unix_socket_directories": "'%s'" % self.folder}.items():
                conf.write("%s = %s\n" % (name, value))

    def start(self):
        self._must("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "60", "start")

    def stop(self, mode="immediate"):
        """immediate: as if the power had failed; fast: connections are closed, and nothing has to be recovered."""
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "30", "stop")

    def __enter__(self):
        try:
            self.make()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        os.close(self.pipe)
        os.waitpid(self.guardian, 0)
