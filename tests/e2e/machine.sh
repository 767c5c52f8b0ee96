# machine.sh -- doctor and bench, nouns, and progress on a terminal.

json() { python3 -c "import json, sys; d = json.load(sys.stdin); assert $1, d"; }
looks() { "$heddle" doctor shop.db --json | json "$1"; }
check "doctor tells what is installed" holds looks 'd["heddle"] and d["sqlite"] and any(f["what"] == "libcurl" for f in d["findings"])'
check_file "and what the place is like" holds looks 'd["writable"] and d["free_bytes"] > 0 and d["file_system"]'
check_file "it tries WAL and a sync" holds looks 'd["fsync_ns"] > 0 and any(f["what"] == "WAL" and f["verdict"] == "good" for f in d["findings"])'
check_file "and leaves nothing behind" holds sh -c '[ -z "$(ls -A . | grep -v "^err$\|^out$")" ]'
"$heddle" set shop.db main/a 1
check_file "of a file: its mode" holds looks 'any(f["what"] == "mode" for f in d["findings"])'
on_server || chmod o+w shop.db
check_file "a file that every user can write is worth a word" holds looks 'any("every user" in f["text"] for f in d["findings"])'
on_server || chmod o-w shop.db
printf 'no store' >text.db
bad() { "$heddle" doctor text.db >bad.txt; [ $? = 5 ] && grep -q "^X file" bad.txt; }
check_file "a file that is no store is bad" holds bad
check_file "a directory that is missing" fails 2 "there is no directory" doctor nowhere/shop.db
on_server && check "of a server: whether it answers" holds looks 'any(f["what"] == "server" and f["verdict"] == "good" for f in d["findings"])'
check_file "doctor fits 80 columns" holds sh -c '"$0" doctor shop.db >d && ! grep -E ".{81}" d' "$heddle"

check "bench measures" holds sh -c '"$0" bench --json >b && [ "$(wc -l <b)" = 6 ] && ! grep -q "\"rate\":0," b' "$heddle"
check "and cleans up" holds sh -c '! ls | grep -q heddle-bench'
check "where nothing can be made it says so" fails 5 "can be made there" bench nowhere
interrupted_bench() { "$heddle" bench --seconds 100 >cut.txt 2>&1 & b=$!
    until_true sh -c 'ls | grep -q heddle-bench'; kill -INT $b; wait $b; [ $? = 130 ] && ! ls | grep -q heddle-bench; }
check "Ctrl-C ends it, and it cleans up" holds interrupted_bench

check "commands have their noun too" gives 0 "1" cells get shop.db main/a
check "events ls" gives 0 "" events ls shop.db
check "the old way stays" gives 0 "" events shop.db
check "a noun alone lists what it has" fails 1 "Say which: get, set" cells
check "a misspelt one names the nearest" fails 1 "heddle cells get" cells gte
check "help knows it" holds sh -c '"$0" help events ls | grep -q "^heddle events"' "$heddle"

python3 -c 'for i in range(5000):
    print("{\"space\":\"m\",\"id\":\"d%06d\",\"value\":%d}" % (i, i))' >many.jsonl
check "import has a bar on a terminal" on_terminal "import \[####" db import many.db many.jsonl
on_server || [ -e many.db ] || "$heddle" db import many.db many.jsonl
check_file "so has backup" on_terminal "backup \[####" db backup many.db copy.db
check "and export" on_terminal "export \[#" db export many.db
check "no bar in a pipe" holds sh -c '"$0" db import again.db many.jsonl 2>&1 | grep -v "5000 documents imported" | wc -l | grep -qx 0' "$heddle"
check "the file is in order" gives 0 "many.db: in order" db check many.db
