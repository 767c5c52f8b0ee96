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
