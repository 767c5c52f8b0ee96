# watch.sh -- changes as they are committed, by other processes.

"$heddle" set shop.db main/stock '{"apples": 12, "pears": 1}' main/ready true

# Starts a watch and waits until it has told what is there: from then on it misses nothing.
start_watch() { # start_watch FILE LINES ARGUMENTS...
    out=$1 lines=$2
    shift 2
    : >"$out"
    "$heddle" watch shop.db --now "$@" >"$out" 2>"$out.err" &
    watcher=$!
    until_true lines_in "$out" "$lines"
}
line_is() { [ "$(sed -n "$2p" "$1")" = "$3" ] || { cat "$1"; false; }; }

start_watch all 2 --json --count 6
start_watch paths 1 main/stock --json --paths --count 2 && other=$watcher
start_watch place 1 main/stock#/pears --count 2 && third=$watcher
"$heddle" set shop.db main/stock#/apples 11
"$heddle" set shop.db main/stock#/pears 2 main/new 1
"$heddle" rm shop.db main/new

check "no changes are not worth a watch" fails 1 "number from 1" watch shop.db --count 0
check "--count ends it" holds until_true lines_in all 6
check "--now tells what is there" holds line_is all 1 '{"space":"main","id":"ready","seq":1,"after":true}'
check "a change has seq, before and after" holds line_is all 3 \
    '{"space":"main","id":"stock","seq":2,"before":{"apples":12,"pears":1},"after":{"apples":11,"pears":1}}'
check "documents of one commit have one seq" holds grep -qx \
    '{"space":"main","id":"new","seq":3,"after":1}' all
check "a deletion has no after" holds line_is all 6 \
    '{"space":"main","id":"new","seq":4,"before":1}'
check "--paths tells the changed paths only" holds line_is paths 2 \
    '{"space":"main","id":"stock","seq":2,"changes":[{"path":"/apples","before":12,"after":11}]}'
check "a watched place changes only with it" holds line_is place 2 "     3  main/stock 1 -> 2"

start_watch two 2 main/stock#/apples main/stock#/pears --count 5; both=$watcher
start_watch inner 2 main main/stock#/pears --count 5
"$heddle" set shop.db main/stock#/pears 3
"$heddle" set shop.db main/stock#/pears 4 main/stock#/apples 10
check "each of two places in a document is watched" holds until_true lines_in two 5
check "a change of the second alone is told" holds grep -q "main/stock 2 -> 3" two
check "a change of both is told for both" holds sh -c 'grep -q "main/stock 11 -> 10" two && grep -q "main/stock 3 -> 4" two'
check "a place in a space that is watched is told once" holds until_true lines_in inner 4
kill "$both" "$watcher" 2>/dev/null; wait 2>/dev/null

start_watch spaces 2 --json --count 4
"$heddle" set shop.db fresh/one 1
until_true lines_in spaces 4 || :
check "a space that is made later is watched too" holds grep -q '"space":"fresh","id":"one"' spaces

start_watch cut 2 main
kill -INT "$watcher"
ends_well() { wait "$watcher"; [ $? = 0 ] && ! grep -q . cut.err; }
check "Ctrl-C ends it with status 0, without a word" holds ends_well

gone() { "$heddle" watch shop.db --now --count 100 | head -n 1 >first; lines_in first 1; }
timeout_gone() { gone & g=$!; until_true lines_in first 1
    "$heddle" set shop.db main/ready 1; "$heddle" set shop.db main/ready 2; wait $g; }
check "a closed pipe ends it" holds timeout_gone
check "a space or cell that does not exist yet can be watched" holds start_watch later 0 later/x
"$heddle" set shop.db later/x 5
check "and is, from its first value on" holds until_true grep -q -- "- -> 5" later
kill "$watcher"; wait 2>/dev/null
"$heddle" set shop.db main@user/note 1 --user ann
start_watch hers 1 main@user/note --user ann --json
"$heddle" set shop.db main@user/note 2 --user bob
"$heddle" set shop.db main@user/note 3 --user ann
check "a user's document is watched for that user" holds until_true lines_in hers 2
check "and for no other" holds line_is hers 2 \
    '{"space":"main","scope":"user","id":"note","seq":'"$(sed -n '2s/.*"seq":\([0-9]*\).*/\1/p' hers)"',"before":1,"after":3}'
kill "$watcher"; wait 2>/dev/null
check_file "the file is in order" gives 0 "shop.db: in order" db check shop.db
"$heddle" set full.db main/a 1
no_room() { "$heddle" watch full.db main --now --count 1 >/dev/full 2>err; [ $? = 6 ] && grep -q "cannot write" err; }
check "where there is no room for the changes it says so" holds no_room
gone() { { timeout 20 "$heddle" watch full.db main --now; echo $? >code; } | true; [ "$(cat code)" = 141 ]; }
check "when the reader is gone that is another status" holds gone
long=$(python3 -c 'print("x" * 600)')
"$heddle" set full.db main/$long 1 $long/a 2
watches_long() { [ "$(timeout 20 "$heddle" watch full.db "$1" --now --count 1 --json | sed 's/"seq":[0-9]*/"seq":0/')" = "$2" ]; }
check "a document with a long name is watched" holds watches_long main/$long \
    "{\"space\":\"main\",\"id\":\"$long\",\"seq\":0,\"after\":1}"
check "and a space" holds watches_long $long "{\"space\":\"$long\",\"id\":\"a\",\"seq\":0,\"after\":2}"
whole_path() { timeout 20 "$heddle" watch full.db main/deep --json --paths --count 1 >changed & watcher=$!
    until_true sh -c '"$0" set full.db main/deep "{\"'"$long$long"'\": $$}" && [ -s "$1" ]' "$heddle" changed
    wait $watcher; grep -q "\"path\":\"/$long$long\"" changed; }
"$heddle" set full.db main/deep "{\"$long$long\": 1}"
check "with --json a long path is whole" holds whole_path
# The command ends, whether the file is gone or another file has its name.
ends_with_it() { # ends_with_it COMMAND...
    rm -f lost.db* && "$heddle" set lost.db main/a 1 && "$heddle" set other.db main/a 2 || return
    : >seen
    timeout 60 "$heddle" watch lost.db main/a --now >seen 2>err &
    watcher=$!
    until_true lines_in seen 1 && "$@"
    wait $watcher
    [ $? = 2 ] && grep -q "deleted or replaced" err || { cat err; false; }
}
check_file "a file that is deleted ends it, with an error" holds ends_with_it rm lost.db
check_file "and so does one that is replaced" holds ends_with_it mv other.db lost.db
