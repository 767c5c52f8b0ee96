# db_file.sh -- what a store in a file has and a store on a server has not: backups, repair, a place on the disk.

"$heddle" set shop.db main/stock '{"apples": 12}' other/text '"a"'
python3 -c 'import json; print(json.dumps({"k%d" % i: "x" * 40 for i in range(2000)}))' |
    "$heddle" set shop.db main/large -
for i in 1 2 3; do "$heddle" set shop.db "main/large#/k$i" $i; done
"$heddle" db export shop.db >a.jsonl
same_export() { "$heddle" db export "$1" | cmp - a.jsonl; }

check "there is nothing to repair in it" gives 0 "shop.db: in order" db repair shop.db
: >nothing.db
check "an empty file is not called a store in order" gives 0 "nothing.db: empty, there is no store in it" db check nothing.db
check "nor by repair" gives 0 "nothing.db: empty, there is no store in it" db repair nothing.db
check "a name that looks like a URI is a name" gives 0 "" set 'file:x.db?mode=memory' main/a 1
check "and the file has that name" holds test -f 'file:x.db?mode=memory'
check "what it holds is found under it" gives 0 "1" get 'file:x.db?mode=memory' main/a
cp shop.db still.db; cp still.db still.before
check "a file that is in order is exported without writing" holds "$heddle" db export still.db
check "and is as it was" holds cmp still.db still.before
: >empty.db
check "an empty file is no store" fails 5 "is empty" db export empty.db
check "and does not become one" holds test ! -s empty.db

check "backup copies the file" holds "$heddle" db backup shop.db copy.db
check "the copy is in order" gives 0 "copy.db: in order" db check copy.db
check "and the same" holds same_export copy.db
private_backup() { (umask 022 && cp shop.db private.db && chmod 600 private.db &&
    "$heddle" db backup private.db private-copy.db && [ "$(stat -c %a private-copy.db)" = 600 ] &&
    chmod 664 private.db && "$heddle" db backup private.db private-copy.db --force &&
    [ "$(stat -c %a private-copy.db)" = 664 ]); }
check "a backup has the mode of the file" holds private_backup
left_wal() { "$heddle" set live.db main/a 1 && "$heddle" db backup live.db monday.db &&
    python3 -c 'import os, sqlite3, subprocess, sys
c = sqlite3.connect("live.db")
c.execute("select * from meta").fetchall()
subprocess.run([sys.argv[1], "set", "live.db", "main/a", "2"], check=True)
os._exit(0)' "$heddle" && test -s live.db-wal && cp monday.db live.db; }
check "a program dies, and cp puts a backup in the place of its file" holds left_wal
check "the WAL that it left is not taken for the backup's" fails 5 "live.db-wal belongs to another file" get live.db main/a
check "without it the backup is read" holds sh -c 'rm live.db-wal; [ "$("$0" get live.db main/a)" = 1 ]' "$heddle"
check "backup does not replace a file" fails 3 "exists already" db backup shop.db copy.db
check "unless --force" holds "$heddle" db backup shop.db copy.db --force
ln -s shop.db same.db
check "not even then the file itself" fails 1 "is the file itself" db backup shop.db ./shop.db --force
check "by whatever name" fails 1 "is the file itself" db backup shop.db same.db --force
check "nor what is no file" fails 5 "is no file" db backup shop.db . --force
mkfifo pipe
check "nor a pipe" fails 5 "is no file" db backup shop.db pipe --force
check "which stays one" holds test -p pipe
check "a copy needs a place" fails 2 "mkdir -p no/where" db backup shop.db no/where/copy.db
mkdir away && ln -s away/real.db link.db && cp copy.db away/real.db
check "a link is followed" holds "$heddle" db backup shop.db link.db --force
check "and stays one" holds test -L link.db
check "a copy needs a name" fails 1 "needs a name" db backup shop.db ""
# A program that was killed leaves a WAL, which must not be taken for one of the copy.
replaces_all() { "$heddle" set old.db main/old 1 || return 1
    : >seen
    "$heddle" watch old.db main --now >seen & watcher=$!
    until_true lines_in seen 1 || return 1
    for i in 1 2 3; do "$heddle" set old.db main/old $i || return 1; done
    kill -9 $watcher; wait $watcher
    [ -s old.db-wal ] || { echo "there is no WAL"; return 1; }
    "$heddle" db backup shop.db old.db --force && "$heddle" db export old.db >b.jsonl &&
        "$heddle" db export shop.db | cmp - b.jsonl; }
check "what replaces a store replaces all of it" holds replaces_all
"$heddle" set used.db main/old 1
: >seen # the lines of the program before are not taken for this one's
"$heddle" watch used.db main --now >seen & watcher=$!
check "a program has a file open" holds until_true lines_in seen 1
check "then not even --force replaces it" fails 6 "process $watcher has used.db open" \
    db backup shop.db used.db --force
"$heddle" set used.db main/new 2
check "that program goes on" holds until_true lines_in seen 2
kill $watcher; wait $watcher 2>/dev/null
check "when it has ended it is replaced" holds "$heddle" db backup shop.db used.db --force
check "it leaves nothing else behind" holds test ! -e copy.db.partial
# While the old file is kept shut (db_backup.c), somebody opens it.
waits_for_the_new_one() { "$heddle" set moved.db main/old 1 && "$heddle" set next.db main/new 1 &&
    python3 - "$heddle" <<'END'
import fcntl, os, struct, subprocess, sys
open("moved.db-wal", "w").close() # then it is opened once, and not looked at before
fd = os.open("moved.db", os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0x40000002, 510, 0))
late = subprocess.Popen([sys.argv[1], "get", "moved.db", "main/new"])
def opened():
    fds = "/proc/%d/fd" % late.pid
    return any(os.readlink(os.path.join(fds, f)).endswith("/moved.db") for f in os.listdir(fds))
while late.poll() is None:
    try:
        if opened(): break
    except OSError: pass
os.rename("next.db", "moved.db")
os.close(fd)
sys.exit(late.wait())
END
}
check "whoever opens a file that is being replaced gets the new one" holds waits_for_the_new_one

shrinks() { "$heddle" db prune shop.db >/dev/null && "$heddle" db vacuum shop.db --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["after"]["bytes"] < r["before"]["bytes"], r'; }
"$heddle" db checkpoint shop.db >/dev/null
check "plain SQL sees the documents then" holds python3 -c '
import json, sqlite3
rows = sqlite3.connect("shop.db").execute("select value from document where id = ?", ("stock",))
assert [json.loads(v) for v, in rows] == [{"apples": 12}]'
check "vacuum makes the file smaller" holds shrinks
check "nothing is lost by it" holds same_export shop.db

# damage: what is read is right, or an error; repair says what it restored
"$heddle" set hurt.db main/x '{"t":"hello"}' main/y 1
python3 -c '
import sqlite3
db = sqlite3.connect("hurt.db")
db.execute("update head set value = replace(value, char(108), char(76)) where id = ?", ("x",))
db.commit()'
check "a damaged document is refused" fails 5 "main/x.*hash is wrong" get hurt.db main/x
check "the others are read" gives 0 1 get hurt.db main/y
export_warns() { "$heddle" db export hurt.db >out.jsonl 2>err; [ $? = 5 ] && [ "$(wc -l <out.jsonl)" = 1 ] &&
    grep -q "1 document cannot be read" err; }
check "export leaves it out, and says so" holds export_warns
check "repair restores it from the log" gives 0 "restored: main/x" db repair hurt.db
check "it is what it was" gives 0 '{"t": "hello"}' get hurt.db main/x
check "and the file is in order" gives 0 "hurt.db: in order" db check hurt.db
