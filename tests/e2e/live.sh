# live.sh -- asking a running program: graph, why, why-not, trace, stats, pieces.

shop=${heddle%/*}/tests/e2e/live_shop
start_shop() { # start_shop ARGUMENTS...; leaves its number in $pid
    : >ready
    "$shop" "$@" >ready 2>shop.err &
    pid=$!
    until_true grep -q ready ready
}
stop_shop() { kill "$1"; wait "$1" 2>/dev/null; }
in_80_columns() { "$heddle" "$@" >wide && ! grep -E '.{81}' wide; }
prints() { # prints PATTERN ARGUMENTS...
    pattern=$1
    shift
    "$heddle" "$@" | grep -q -- "$pattern" || { "$heddle" "$@"; false; }
}

"$heddle" set shop.db main/first 1
check_file "without a program there is a status of its own" fails 8 "hd_runtime_serve" graph shop.db
check_file "also for the rest" fails 8 "no running program" stats shop.db
check_file "a file that is missing is said to be" fails 2 "no file none.db" graph none.db
check "a node without a program" fails 8 "is no cell" why shop.db total
check "of a cell the file tells its commits" holds prints "set first 1" why shop.db main/first
check "a space that is not there is named" fails 2 "no space \"mian\"" why shop.db mian/first
check "pieces need no program" gives 0 "there are no pieces" pieces shop.db

check "a program serves" holds start_shop shop.db
first=$pid
beside=shop.db-live-$pid
on_server && beside=live.sock
check "its socket is the owner's alone" holds sh -c '[ "$(stat -c %a "$0")" = 600 ]' "$beside"
settled() { "$heddle" why shop.db main/parity | grep -q 'main/parity is "even"'; }
check "it settles" holds until_true settled

check "graph: nodes in order, with what they read" holds prints "reads   main/price, main/count" graph shop.db
check_file "streams: there are no handlers" gives 0 "the program has no handlers, and no event waits" streams shop.db
check "graph --dot is for Graphviz" holds prints "^digraph heddle" graph shop.db --dot
check "graph --json has nodes and edges" holds sh -c \
    '"$0" graph shop.db --json | python3 -c "import json, sys; g = json.load(sys.stdin); assert any(n[\"name\"] == \"total\" for n in g[\"nodes\"]) and g[\"edges\"]"' "$heddle"
"$heddle" set shop.db main/price 5
changed() { "$heddle" why shop.db main/total | grep -q "main/total is 20"; }
check "a commit of another process arrives" holds until_true changed
check "why tells the cause" holds prints "main/price  *= 5  by" why shop.db main/total
check "and the way there" holds prints "total ran last because" why shop.db main/parity
check "and what a node reads" holds prints "main/count  *4" why shop.db total
check "and the commits" holds prints "set price 5" why shop.db main/price
check "why --json: the answer, then commits" holds sh -c \
    '"$0" why shop.db main/price --json >w && [ "$(wc -l <w)" -ge 2 ] && python3 -c "import json; [json.loads(x) for x in open(\"w\")]"' "$heddle"
check "why-not: no live node reads" holds prints "no live node reads" why-not shop.db unseen
check "why-not: debounced" holds prints "nothing has changed for 60000 ms" why-not shop.db slow
check "why-not of a cell: who writes it" holds prints "^parity" why-not shop.db main/parity
check "why-not --json has a word for it" holds prints '"reason":"dormant"' why-not shop.db unseen --json
check "a misspelt node names the nearest" fails 2 "Did you mean parity" why-not shop.db partiy
check "the last part of a piece's node is enough" holds sh -c '"$0" why shop.db due | grep -q "^main:corner:due " && "$0" why-not shop.db due | grep -q "^main:corner:due "' "$heddle"
check "stats" holds prints "^total  *[0-9]" stats shop.db
check "stats are sorted" holds sh -c '"$0" stats shop.db --by name | sed -n 2p | grep -q "^complain"' "$heddle"
check "an unknown order is refused" fails 1 "runs, time" stats shop.db --by size
check "stats: a long name has a line of its own" holds prints "the_shop_has_sold$" stats shop.db
check "stats --wide: it has not" holds prints "the_shop_has_sold  *[0-9]" stats shop.db --wide
check "stats --json" holds prints '"totals":{' stats shop.db --json
check "pieces that run are marked" holds prints "^main/corner .* runs, 1 node" pieces shop.db
check "pieces --json" holds prints '"started":1,"result":"main/corner/due","running":true' pieces shop.db --json

check "the trace can be switched on" gives 0 "the program traces now" trace shop.db --on
"$heddle" set shop.db main/price 7
traced() { "$heddle" trace shop.db | grep -q "total .*main/price"; }
check "trace shows runs and why" holds until_true traced
check "why knows the value before" holds prints "5 -> 7  by another program" why shop.db main/total
traced_long() { "$heddle" trace shop.db | grep -q "the_shop_has_sold$"; }
check "trace: a long name has a line of its own" holds until_true traced_long
check "trace --wide: it has not" holds prints "the_shop_has_sold  *[a-z]" trace shop.db --wide
check "trace --chrome is for the browser" holds sh -c \
    '"$0" trace shop.db --chrome | python3 -c "import json, sys; assert json.load(sys.stdin)[\"traceEvents\"]"' "$heddle"
check "and off again" gives 0 "the program does not trace any more" trace shop.db --off
check "for a while" holds sh -c '"$0" trace shop.db --seconds 0 2>&1 | grep -q "tracing for 0 s"' "$heddle"
interrupted_trace() {
    "$heddle" trace shop.db --seconds 600 >cut 2>cut.err &
    tracer=$!
    until_true grep -q "tracing for" cut.err
    kill -INT "$tracer"
    wait "$tracer" && ! "$heddle" trace shop.db --seconds 0 --json 2>/dev/null | grep -q '"on":true'
}
check "Ctrl-C ends it early, and the trace is off" holds interrupted_trace
check "--on and --off at once are refused" fails 1 "exclude" trace shop.db --on --off
for command in "graph shop.db" "why shop.db main/parity" "why-not shop.db slow" "stats shop.db" "pieces shop.db"; do
    check "$command fits 80 columns" holds in_80_columns $command
done

# Beside a file each program has a socket of its own, and the command finds them.
second_program() {
    check "a second program on the file serves too" holds start_shop shop.db
    second=$pid
    check "then the command asks which" fails 1 "Say which with --pid.*$second" graph shop.db
    check "--pid says" holds prints "^total" graph shop.db --pid "$second"
    check "the file has its pieces whoever serves" holds sh -c '"$0" pieces shop.db 2>&1 | grep -q "2 programs serve"' "$heddle"
    check "a number that does not serve is refused" fails 8 "does not serve" graph shop.db --pid 1
    check "doctor names them" holds prints "$second" doctor shop.db
    kill -9 "$second"; wait "$second" 2>/dev/null
    check "one that was killed is forgotten" holds prints "^total" graph shop.db
    check "and its socket removed" holds sh -c '! [ -e "shop.db-live-$0" ]' "$second"
    mkdir elsewhere && ln -s ../shop.db elsewhere/link.db
    check "a link to the file leads to the program" holds prints "^total" graph elsewhere/link.db
}
on_server || second_program
stop_shop "$first"

check "a socket may be elsewhere" holds start_shop shop.db here.sock
check "and is named" holds prints "^total" graph shop.db --socket here.sock
check_file "without that nobody is found" fails 8 "no running program" graph shop.db
stop_shop "$pid"
check "what a restart would run: nothing" gives 0 "nothing is stale: no piece would have work to do" pieces shop.db --stale
"$heddle" set shop.db main/price 11
check "what it would run, once something has changed" holds prints "^main/main  *[0-9]* node.* would run" pieces shop.db --stale
check "the same for a program" holds prints '"id":"main","stale_nodes":' pieces shop.db --stale --json
check "a socket that nobody serves" fails 8 "no program serves at" graph shop.db --socket here.sock
check "also where the file could tell something" fails 8 "no program serves at" pieces shop.db --socket here.sock
check "or the log" fails 8 "no program serves at" why shop.db main/price --socket here.sock
check_file "who is asked for by number must be there" fails 8 "no running program" pieces shop.db --pid 1
check_file "also for why" fails 8 "no running program" why shop.db main/price --pid 1
rm -f here.sock

python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.bind("mute.sock"); s.listen()
print("ready", flush=True)
c, _ = s.accept(); c.recv(4096); c.sendall(b"{\"heddle\":1,\"ans"); c.close()' >mute &
until_true grep -q ready mute
check "half an answer is none" fails 6 "gave no answer" graph shop.db --socket mute.sock
wait
check "the file is in order" gives 0 "shop.db: in order" db check shop.db
