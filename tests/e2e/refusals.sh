# refusals.sh -- files that cannot be used: said clearly, left alone.

head -c 50000 /dev/urandom >noise; cp noise noise.before
check "a file that is none is refused" fails 5 "not a heddle file" get noise main/a
check "also for writing" fails 5 "not a heddle file" set noise main/a 1
check "and by check" fails 5 "not a heddle file" db check noise
check "it is untouched" holds cmp noise noise.before

python3 -c 'import sqlite3; c = sqlite3.connect("other.db"); c.execute("create table t(x)")'
cp other.db other.before
check "another program's database is refused" fails 5 "not a heddle file" set other.db main/a 1
check "it is untouched" holds cmp other.db other.before

"$heddle" set new.db main/a 1
python3 -c 'import sqlite3; sqlite3.connect("new.db").execute("pragma user_version = 999")'
check "a newer format is refused, with what to do" fails 5 "install a newer heddle" get new.db main/a

"$heddle" set torn.db main/a '{"x": 1}' main/b 2
for i in $(seq 20); do "$heddle" set torn.db main/c$i "\"some words to fill the pages $i\""; done
"$heddle" db checkpoint torn.db >/dev/null
python3 - <<'EOF'
data = bytearray(open("torn.db", "rb").read())
# Wherever it stands: a page that is free keeps what it held.
at = data.find(b'"some words to fill the pages 7"')
while at >= 0:
    data[at + 3] ^= 1
    at = data.find(b'"some words to fill the pages 7"', at)
open("torn.db", "wb").write(data)
EOF
finds_damage() { "$heddle" db check torn.db >found 2>err; [ $? = 5 ] && grep -q finding err &&
    [ -s found ] || { cat found err; false; }; }
check "check finds one wrong bit" holds finds_damage
# Of a file that has lost a page, what is on the others.
python3 -c 'for i in range(30): print("{\"space\":\"m\",\"id\":\"d%d\",\"value\":\"%s\"}" % (i, "x" * 9000))' |
    "$heddle" db import lost.db >/dev/null
"$heddle" db prune lost.db >/dev/null; "$heddle" db vacuum lost.db >/dev/null
python3 - <<'EOF'
data = bytearray(open("lost.db", "rb").read())
size = data[16] << 8 | data[17]
for page in range(0, len(data), size): # one in the middle of a value: where it goes on
    if data[page + 4:page + size] == b"x" * (size - 4) and data[page:page + 4] != bytes(4):
        data[page:page + 4] = b"\x7f" * 4
        break
open("lost.db", "wb").write(data)
EOF
one_line() { "$heddle" db check lost.db >found 2>err; [ $? = 5 ] && grep -q "^integrity: .* page" found &&
    [ "$(wc -l <found)" = "$(sed -n 's/.* \([0-9]*\) findings*$/\1/p' err)" ] || { cat found err; false; }; }
check "a finding is one line" holds one_line
saves() { "$heddle" db export lost.db >saved 2>err; [ $? = 5 ] && [ "$(wc -l <saved)" = 29 ] &&
    grep -q "m/d[0-9]* cannot be read" err || { wc -l saved; cat err; false; }; }
check "export saves what can be read, and names the rest" holds saves

finds_json() { "$heddle" db check torn.db --json 2>/dev/null | grep -q '^{"finding":".*"}$'; }
check "and tells it as JSON" holds finds_json

"$heddle" set shut.db main/a 1
mkfifo busy.in
can_be_refused() { [ "$(id -u)" != 0 ]; }
if can_be_refused; then
    chmod 444 shut.db
    check "a read-only file can be read" gives 0 1 get shut.db main/a
    check "but not written" fails 5 "cannot be written" set shut.db main/a 2
    check "and exported" gives 0 '{"space":"main","id":"a","value":1}' db export shut.db
    chmod 000 shut.db
    check "one that cannot be read is not said to be missing" fails 5 "give read permission" get shut.db main/a
    chmod 644 shut.db
    mkdir shut && cp shut.db shut/ && chmod 555 shut
    check "a directory that cannot be written is named" fails 5 "permission to its directory" get shut/shut.db main/a
    chmod 000 shut
    check "a file in a directory that may not be searched is not said to be missing" \
        fails 5 "cannot be reached" get shut/shut.db main/a
    chmod 755 shut
fi
python3 -c '
import sqlite3, sys
c = sqlite3.connect("shut.db", isolation_level=None)
c.execute("begin immediate")
print("locked", flush=True)
sys.stdin.read()' <busy.in >busy & locker=$!
exec 9>busy.in
until_true grep -q locked busy
check "a file that another program keeps locked" fails 6 "another program keeps shut.db locked" set shut.db main/a 2
check "can be read" gives 0 1 get shut.db main/a
exec 9>&-
wait $locker
check "and written when it is free" gives 0 "" set shut.db main/a 1

check "a directory is no file" fails 5 "is a directory" get . main/a
check "a place that does not exist is named" fails 2 "mkdir -p no/such/dir" set no/such/dir/x.db main/a 1
check "an address of another kind is no file" fails 1 "no address of a store" set mysql://u:word@h/d main/a 1
check "its password is not shown" holds sh -c '! grep -q word err'

# A command with a mistake leaves no new store behind.
printf '{"a":' >bad.json
check "a file of IR that is missing" fails 2 "No such file" workflow register none.db none.json
check "IR that is no JSON" fails 4 "a value is expected" workflow register none.db bad.json
check "a condition that cannot hold" fails 3 "not the one given" set none.db main/a 1 --if 5
check "an empty id" fails 1 "not empty" send none.db main/s 1 --id ''
check "a period of nothing" fails 1 "is not 0" send none.db main/s 1 --every 0
check "a user without a name" fails 1 "not empty" set none.db main/a 1 --user ''
no_input() { "$heddle" set none.db main/a - </dev/null 2>err; [ $? = 4 ] && grep -q "a value is expected" err; }
check "an input that is empty" holds no_input
bad_lines() { echo '{"id":"x"}' | "$heddle" db import none.db 2>err; [ $? = 4 ] && grep -q "line 1" err; }
check "lines that are none" holds bad_lines
check "none of them has made a store" holds sh -c '! ls none.db* 2>/dev/null'
check "options about documents need a space" fails 1 "name one" ls shut.db --limit x
printf x >byte
check "a file of one byte is no store" fails 5 "not a heddle file" set byte main/a 1
check "it is untouched" holds sh -c '[ "$(cat byte)" = x ]'
full() { "$heddle" get shut.db main/a >/dev/full 2>err; [ $? = 6 ] && grep -q "cannot write" err; }
check "results that cannot be written are a failure" holds full
closed() { "$heddle" get shut.db main/a <&- >&- 2>err; [ $? = 6 ] && grep -q "cannot write" err; }
check "also where there is nowhere to write them to" holds closed
# 124: it waited for what could not come.
few() { for n in 10 11 12 13 14 15 16 17 18 20 24; do
    (ulimit -n $n; timeout 60 "$heddle" set shut.db main/few $n) 2>err; few=$?
    case $few in 0|6) ;; *) echo "$n descriptors: status $few"; cat err; return 1 ;; esac
done; [ $few = 0 ]; }
check_file "a command with few descriptors left ends, one way or the other" holds few
