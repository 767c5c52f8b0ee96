# leases.sh -- who has which lease: held, abandoned by a process that was killed, free; in a file, and on a server if
# there is one.

lease_shop=${heddle%/*}/tests/e2e/workflow_shop
lease_says() { "$heddle" leases "$1" --json 2>&1 | grep -q -- "$2" || { "$heddle" leases "$1" --json; false; }; }
lease_line() { "$heddle" leases "$1" >line && ! grep -E '.{81}' line && grep -q -- "$2" line || { cat line; false; }; }

leases_of() { # leases_of STORE PLACE
    check "no leases $2" gives 0 "there are no leases" leases "$1"
    check "no leases, as JSON $2" gives 0 "" leases "$1" --json
    "$lease_shop" "$1" >ready 2>shop.err &
    pid=$!
    check "an engine holds one $2" holds until_true lease_says "$1" \
        '^{"space":"main","job":"workflow","state":"held","epoch":1,"session":"[0-9a-f]*","pid":'"$pid"',.*"since_ms":1[0-9]*}$'
    check "for people, too $2" holds lease_line "$1" "^main  workflow  .*held, epoch 1: process $pid"
    kill -9 "$pid"; wait "$pid" 2>/dev/null
    check "killed, it has abandoned it $2" holds until_true lease_says "$1" '"state":"abandoned","epoch":1,"session"'
    "$heddle" workflow worker "$1" echo --exec cat 2>worker.err &
    pid=$!
    check "another one takes it $2" holds until_true lease_says "$1" '"state":"held","epoch":2,.*"pid":'"$pid"
    kill "$pid"; wait "$pid" 2>/dev/null
    check "and gives it up when it ends $2" gives 0 '{"space":"main","job":"workflow","state":"free","epoch":2}' \
        leases "$1" --json
}

# A copy has the document of a lease whose holder lives, and does not have the copy open.
copies_of() { # copies_of STORE PLACE
    flow_of_copy=$here/workflows/nap.json
    "$heddle" workflow register "$1" "$flow_of_copy" >/dev/null
    "$lease_shop" "$1" >ready 2>shop.err &
    original=$!
    until_true lease_says "$1" '"state":"held".*"pid":'"$original"
    "$heddle" db export "$1" | "$heddle" db import imported.db >/dev/null
    copies=imported.db
    if [ -f "$1" ]; then
        "$heddle" db backup "$1" backup.db >/dev/null
        cp "$1" copied.db; cp "$1-wal" copied.db-wal
        copies="imported.db backup.db copied.db"
    fi
    for copy in $copies; do
        check "$copy: its lease is abandoned, $2" holds lease_says "$copy" '"state":"abandoned"'
        "$lease_shop" "$copy" >ready 2>shop.err &
        pid=$!
        check "$copy: an engine takes it, $2" holds until_true lease_says "$copy" '"state":"held".*"pid":'"$pid"
        kill "$pid"; wait "$pid" 2>/dev/null
    done
    check "the original keeps its own, $2" holds lease_says "$1" '"state":"held".*"pid":'"$original"
    kill "$original"; wait "$original" 2>/dev/null
    rm -f imported.db* backup.db* copied.db*
}

check "of a store that is not there" fails 2 "none.db" leases none.db
"$heddle" set shop.db main/lease/flat-3 '{"session": "mine"}'
leases_of shop.db "in a file"
copies_of original.db "of a file"
if [ -n "${HD_POSTGRES:-}" ]; then
    "$heddle" db init "$HD_POSTGRES&schema=leases$$" >/dev/null
    leases_of "$HD_POSTGRES&schema=leases$$" "on a server"
    copies_of "$HD_POSTGRES&schema=copied$$" "of a server's store"
    check "there a program names its socket" fails 8 "--socket" graph "$HD_POSTGRES&schema=leases$$"
    "$heddle" set "$HD_POSTGRES&schema=leases$$" main/n 1
    check "why without a program tells of commits" holds sh -c '"$0" why "$1" main/n | grep -q "set n 1"' \
        "$heddle" "$HD_POSTGRES&schema=leases$$"
fi
