# events.sh -- send, events.

post() { "$heddle" send shop.db main/buy '{"item": "apples"}' >id; }
check "send posts an event and prints its id" holds post
check "the id is one word" holds grep -Eq '^[0-9a-z]{9}-[A-Za-z0-9_.-]+$' id
shows_all() { "$heddle" events shop.db >out.txt && grep -qE '^waiting  20[0-9-]{8} [0-9:]{8}  main/buy$' out.txt &&
    grep -qxF "         $(cat id)  {\"item\":\"apples\"}" out.txt; }
check "events shows it, with time, stream and payload" holds shows_all
check "--handled leaves it out" gives 0 "" events shop.db --handled
check "it is a document of kind event" gives 0 "main/event/$(cat id)" ls shop.db main --kind event
again() { "$heddle" send shop.db main/buy 1 --id order-1 >first && "$heddle" send shop.db main/buy 2 --id order-1 >second; }
check "an id of the sender's may be sent twice" holds again
check "and is one event" holds cmp first second
check "whose payload is the first" gives 0 1 get shop.db "main/event/$(cat first)#/payload"
check "another user's is another" holds sh -c "! $heddle send shop.db main/buy 1 --id order-1 --user eve | cmp -s - first"
check "a malformed payload is refused" fails 4 "payload" send shop.db main/buy '{'
check "so is a malformed stream" fails 4 "cell" send shop.db buy 1
check "--json prints a record" holds sh -c "$heddle send --json shop.db main/buy 1 | grep -q '\"handled\":false'"
later() { "$heddle" send later.db main/buy 1 --after 3600 --id once >once && "$heddle" send later.db main/buy 1 --every 60 --id often >often &&
    "$heddle" events later.db >out.txt && grep -qE '^waiting  .* main/buy  as once  due 20[0-9-]{8} [0-9:]{8}$' out.txt &&
    grep -qE '^waiting  .* main/buy  as often  due 20[0-9-]{8} [0-9:]{8}  every 60000 ms$' out.txt; }
check "an event for later, and a periodic event, say when they are due" holds later
check "both can be dropped" holds sh -c "$heddle events drop later.db once often | grep -c '^dropped ' | grep -qx 2"
check "the event leaves a receipt" holds sh -c "$heddle get later.db main/receipt/$(cat once) | grep -q dropped"
check "a periodic event leaves none" holds sh -c "! $heddle get later.db main/receipt/$(cat often) 2>/dev/null"
check "a time that is no number is refused" fails 1 "after" send later.db main/buy 1 --after soon

# --wait, against a program that handles main/greet.
late() { "$heddle" send live.db main/greet '"eve"' --id early >early; }
check "an event may be posted before there is a program" holds late
"${heddle%/*}/tests/e2e/handler" live.db 2>handler.err &
running=$!
check "the program takes what waited" holds until_true "$heddle" get live.db "main/receipt/$(cat early)"
check "--wait prints what the handler returned" gives 0 '"hello ann"' \
    send live.db main/greet '"ann"' --id one --wait --timeout 20
check "the same id again gets the same outcome" gives 0 '"hello ann"' \
    send live.db main/greet '"bob"' --id one --wait --timeout 20
again() { "$heddle" send live.db main/greet '"bob"' --id one 2>err >id && grep -q "handled before" err; }
check "without --wait it says that it was handled" holds again
json_remark() { "$heddle" send live.db main/greet '"bob"' --id one --json 2>err >id && python3 -c '
import json; assert json.load(open("err")) == {"command": "send", "warning": "the event was handled before"}'; }
check "with --json as JSON" holds json_remark
check "a handler that returns nothing leaves an empty record" gives 0 '{}' \
    send live.db main/greet null --wait --timeout 20
check "each was handled once" gives 0 3 get live.db main/greeted
check "a handler that fails is told, with its words" fails 3 "nobody is called fail" \
    send live.db main/greet '"fail"' --id bad --wait --timeout 20
shows() { "$heddle" events live.db --failed >out.txt && grep -qE "^failed  .* main/greet  as bad$" out.txt &&
    grep -q '"fail"$' out.txt && grep -q "^         nobody is called fail$" out.txt; }
check "the event stays, with the reason and the sender's id" holds shows
failed_json() { "$heddle" events live.db --failed --json | python3 -c '
import json, sys
e, = [json.loads(line) for line in sys.stdin]
assert (e["state"], e["as"], e["stream"], e["attempts"]) == ("failed", "bad", "main/greet", 1), e
assert e["failure"]["message"] == "nobody is called fail" and e["time_ms"] > 1700000000000, e'; }
check "with --json too" holds failed_json
handled_json() { "$heddle" events live.db --handled --id one --json | python3 -c '
import json, sys
e, = [json.loads(line) for line in sys.stdin]
assert (e["state"], e["as"], e["stream"], e["outcome"]) == ("handled", "one", "main/greet", "hello ann"), e'; }
check "a receipt tells its stream and the id of the sender" holds handled_json
check "--stream leaves others out" gives 0 "" events live.db --stream main/other
few() { test "$("$heddle" events live.db --limit 2 --json | wc -l)" = 2; }
check "--limit" holds few
ordered() { for n in 1 2 3 4 5 6 7 8; do "$heddle" send order.db main/buy $n --id "o$n" >/dev/null; done
    "$heddle" events order.db --json | grep -o '"payload":[0-9]' | tr -dc 0-9 | grep -qx 87654321 &&
    "$heddle" events order.db --limit 3 --json | grep -o '"payload":[0-9]' | tr -dc 0-9 | grep -qx 876; }
check "the newest come first, and --limit keeps them" holds ordered
check "an event that was sent is found by its stream and its sender's id" holds \
    sh -c "$heddle events live.db --stream main/knock --id knock-1 | grep -q '^handled '"
check "by the id alone it is not, which the hint says" fails 2 "with --stream" events live.db --id knock-1
check "nor under another stream" fails 2 'no event "knock-1"' events live.db --stream main/greet --id knock-1
check "an id that is not there is said to be" fails 2 'there is no event "nobody"' events live.db --id nobody

streams() { "$heddle" streams live.db "$@" | spoken >out.txt && grep -qE "^main/greet  handler greeter in greeter \([0-9]+\), [0-9]+ handled, 1 refused$" out.txt &&
    grep -q "^    1 failed: heddle events live.db --failed tells why$" out.txt && grep -q "^main/relay  handled in greeter" out.txt; }
check "streams: handlers, and what has failed" holds streams
check_file "streams: of the program at a socket" holds sh -c 'for s in live.db-live-*; do "$0" streams live.db --socket "$s"; done | grep -qE "greeter in greeter \([0-9]+\)"' "$heddle"
check "streams: no program at the socket" holds sh -c '"$0" streams live.db --socket none 2>&1 | grep -q "no program serves at none"' "$heddle"
check "streams --json" holds sh -c "$heddle streams live.db --json | grep -q '\"handler\":\"greeter\".*\"failed\":1'"
pasted() { "$heddle" db export live.db | "$heddle" db import "it's.db" >/dev/null 2>&1 &&
    "$heddle" streams "it's.db" 2>/dev/null | grep -qF "heddle events 'it'\\''s.db' --failed"; }
check_file "a command in a hint can be pasted, whatever the file is called" holds pasted
check_file "--wait for a stream that nobody handles says what is near" fails 2 "Did you mean main/greet?" \
    send live.db main/gret '"x"' --wait
check "and sends nothing" holds sh -c "! $heddle events live.db --json | grep -q main/gret\\\""
slip() { "$heddle" send live.db main/gret '"x"' --id slip >id 2>err && grep -q "no running program handles main/gret. Did you mean main/greet?" err; }
check_file "without --wait it is sent, with a remark" holds slip
# On a server the command asks no program who handles what, and sends it without a remark.
on_server && slip >/dev/null 2>&1
nobody() { "$heddle" streams live.db | grep -A1 "^main/gret  no handler" | grep -q "1 posted: no running program"; }
check "streams shows what waits for no one" holds nobody

prints() { # prints PATTERN ARGUMENTS...
    pattern=$1
    shift
    "$heddle" "$@" >raw.txt 2>&1 && spoken <raw.txt >out.txt && grep -q -- "$pattern" out.txt || { cat raw.txt; false; }
}
check "graph has handlers" holds prints "^greeter  handler, [0-9]* handled, 1 refused" graph live.db
check "with their streams" holds prints "^    takes   main/greet" graph live.db
check "also for Graphviz" holds prints 'shape=cds, label="greeter"' graph live.db --dot
check "and for programs" holds prints '"handlers":\[{.*"handler":"greeter"' graph live.db --json
check "stats has handlers" holds prints "^greeter  *[0-9]* *1 .* handler" stats live.db
check "stats --json too" holds prints '"handlers":\[{' stats live.db --json
check "why-not of a stream leads to streams" holds prints "heddle streams live.db" why-not live.db main/greet
check "by its handler's name, too" holds prints "heddle events live.db --stream main/greet" why-not live.db greeter
check "or the last part of its name" holds prints "^main/relay  handler" why-not live.db relay
check "why of a stream leads to streams" holds prints "heddle streams live.db" why live.db main/greet
check "and tells nothing of the log" holds sh -c '! "$0" why live.db main/greet | grep "in the log"' "$heddle"
check "why by its handler's name, too" holds prints "heddle events live.db --stream main/greet" why live.db greeter
check "why-not of a misspelt stream" fails 2 "Did you mean main/greet" why-not live.db main/grreet
check "why-not of a misspelt cell" fails 2 "Did you mean main/greeted" why-not live.db main/greetedd
check "why-not of a cell that is there" holds prints "only commits change it" why-not live.db main/greeted

attempts() { "$heddle" events live.db --failed --json | grep -q '"attempts":2'; }
check "a failed event is tried again when told" holds sh -c "$heddle events retry live.db bad | grep -q '^retried '"
check "by the program that runs" holds until_true attempts
check "an event that does not wait cannot be" fails 2 'no event "nobody" waits' events retry live.db nobody
check "an event is dropped, with a reason" holds sh -c "$heddle events drop live.db bad slip --why 'a slip' | grep -c '^dropped ' | grep -qx 2"
check "and is no dead letter any more" gives 0 "" events live.db --failed
dropped() { "$heddle" events live.db --id bad --json | grep -q '"state":"dropped".*"stream":"main/.*"outcome":{"dropped":"a slip"}'; }
check "its receipt says so" holds dropped
check "sent again it counts as handled" holds sh -c "$heddle send live.db main/greet 1 --id bad 2>&1 | grep -q 'handled before'"
check "retry of all, of none" gives 0 "" events retry live.db --all
check "of what?" fails 1 "which event" events drop live.db

# why goes through the handler's commit to the event and its sender.
sent() { "$heddle" send live.db main/relay '"zoe"' --id via --wait --timeout 20 >out.txt &&
    until_true sh -c "$heddle why live.db main/greeted 2>&1 | grep -q 'sent as via'"; }
check "why leads from a cell to the event and its sender, through two handlers" holds sent
chain() { "$heddle" why live.db main/greeted >out.txt 2>&1
    grep -q "^greeter handled event " out.txt && grep -q "^  sent by session .*, main/relay$" out.txt &&
    grep -q "^  main/relay handled event .*, sent as via$" out.txt && grep -q '^    with "zoe"$' out.txt &&
    grep -q "^    posted by session " out.txt || { cat out.txt; false; }; }
check "each with what it was sent" holds chain
check "with --json" holds sh -c "$heddle why live.db main/greeted --json 2>/dev/null | grep -q '\"handler\":\"main/relay\",\"as\":\"via\"'"
check "a stream that nobody handles is waited for as long as asked" fails 6 "no program has handled" \
    send live.db main/unknown 1 --wait --timeout 1
check "a time that is no number is refused" fails 1 "timeout" send live.db main/greet 1 --wait --timeout soon
stop() {
    "$heddle" send live.db main/unknown 2 --wait --timeout 60 >out.int 2>&1 &
    sender=$!
    until_true sh -c "$heddle events live.db --waiting --stream main/unknown --json | grep -q '\"payload\":2'"
    kill -INT $sender
    wait $sender
    [ $? = 130 ]
}
check "Ctrl-C ends the waiting" holds stop
check "and leaves the event" holds sh -c "$heddle events live.db --waiting --stream main/unknown --json | grep -q '\"payload\":2'"
by() { "$heddle" log live.db main --json | grep '"by":"greeter"' | wc -l | grep -qx 4; }
check "C353: each handling names its handler in the log" holds by
check "and the build of its code" holds sh -c '"$0" log live.db main --json | grep -cE "\"build\":\"[^\"]{11}\",\"by\":\"greeter\"" | grep -qx 4' "$heddle"
kill $running
wait $running 2>/dev/null
check "the store is in order" holds sh -c '"$0" db check live.db | grep -q ": in order$"' "$heddle"

words=$(python3 -c 'print("many words " * 20)')
"$heddle" send wide.db main/buy "{\"text\": \"$words\"}" --id "an-order-with-an-id-that-is-long-enough" --after 3600 >/dev/null
narrow_events() { terminal events wide.db --color never >out.txt; grep -q '"text":"many words .*\.\.\.' out.txt && ! tr -d '\r' <out.txt | grep -E '.{81}'; }
narrow_log() { terminal log wide.db main --color never >out.txt; grep -q '{"as":.*\.\.\.' out.txt && ! tr -d '\r' <out.txt | grep -v 'set meta event/' | grep -E '.{81}'; }
if python3 -c 'import os; os.openpty()' 2>/dev/null; then
    check "on a terminal events cuts what has no room" holds narrow_events
    check "and so does log" holds narrow_log
    check "--wide does not" on_terminal "many words .*many words \"" events wide.db --wide
fi
check "elsewhere nothing is cut" holds sh -c '"$0" events wide.db | grep -q "  {\"text\":\"many words .*many words \"}$"' "$heddle"

long=$(python3 -c 'print("x" * 700)')
"${heddle%/*}/tests/e2e/handler" long.db "$long" 2>handler.err &
running=$!
check "--wait, in a space with a long name" gives 0 '"hello ann"' \
    send long.db "$long/greet" '"ann"' --wait --timeout 20
check "also for a failure" fails 3 "nobody is called fail" \
    send long.db "$long/greet" '"fail"' --wait --timeout 20
check "events names the stream whole" holds sh -c '"$0" events long.db --waiting --json | grep -q "\"stream\":\"$1/greet\""' "$heddle" "$long"
kill $running
wait $running 2>/dev/null
check "an id of nothing is a slip, not a defect" fails 1 "id of an event" send shop.db main/buy 1 --id ""

check "a slip in a payload is told" fails 4 "a key in quotes" send none.db main/buy '{bad'
check_file "and leaves no file behind" holds test ! -e none.db

# A program that ends before it has answered: the event is posted all the same.
mute() {
    python3 -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("mute.db-live-%d" % os.getpid()); s.listen()
print("ready", flush=True)
while True: s.accept()[0].close()' >mute &
    mute=$!
    until_true grep -q ready mute
    "$heddle" send mute.db main/buy 1 >id 2>err
    sent=$?
    kill $mute
    wait $mute 2>/dev/null
    cat err
    [ $sent = 0 ] && [ ! -s err ] && "$heddle" events mute.db --json | grep -q "\"id\":\"$(cat id)\""
}
"$heddle" set mute.db main/first 1
check_file "send says nothing of a program that ends before it answers" holds mute
