# events.sh -- send, events.

post() { "$heddle" send shop.db main/buy '{"item": "apples"}' >id; }
check "send posts an event and prints its id" holds post
check "the id is one word" holds grep -Eq '^[0-9a-z]{9}-[A-Za-z0-9_.-]+$' id
check "events shows it, with stream and payload" gives 0 \
    "waiting  main/$(cat id) main/buy {\"item\":\"apples\"}" events shop.db
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
shows() { "$heddle" events live.db --waiting | grep -A1 "^failed .* main/greet \"fail\"" | grep -q "nobody is called fail"; }
check "the event stays, with the reason" holds shows
check "a stream that nobody handles is waited for as long as asked" fails 6 "no program has handled" \
    send live.db main/unknown 1 --wait --timeout 1
check "a time that is no number is refused" fails 1 "timeout" send live.db main/greet 1 --wait --timeout soon
stop() {
    "$heddle" send live.db main/unknown 2 --wait >out.int 2>&1 &
    sender=$!
    until_true sh -c "$heddle events live.db --waiting | grep -q 'main/unknown 2'"
    kill -INT $sender
    wait $sender
    [ $? = 130 ]
}
check "Ctrl-C ends the waiting" holds stop
check "and leaves the event" holds sh -c "$heddle events live.db --waiting | grep -q 'main/unknown 2'"
by() { "$heddle" log live.db main --json | grep '"by":"greeter"' | wc -l | grep -qx 3; }
check "C353: each handling names its handler in the log" holds by
check "and the build of its code" holds sh -c '"$0" log live.db main --json | grep -cE "\"build\":\"[^\"]{11}\",\"by\":\"greeter\"" | grep -qx 3' "$heddle"
kill $running
wait $running 2>/dev/null
check "the file is in order" gives 0 "live.db: in order" db check live.db

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
check "and leaves no file behind" holds test ! -e none.db
