# demo.sh -- the demonstration: it ends well, shows what it promises, and leaves a good file.
#
# What is looked for here has been measured by the demonstration while it ran: "ok" stands before
# what was compared, and a comparison that fails makes it end with status 7.

demonstrate() { NO_COLOR=1 "$heddle" demo --fast --dir shop >demo.txt; }
check "the demonstration ends well" holds demonstrate
check "nothing that it claims did not happen" holds test "$(grep -c '^  NO ' demo.txt)" = 0
# Sentences are searched as they are without line breaks.
awk '/^      [^ ]/ { sub(/^ +/, " "); printf "%s", $0; next } { printf "\n%s", $0 }' demo.txt >lines.txt
shows() { check "it shows: $1" holds grep -qE -- "$2" lines.txt; }

shows "what nobody looks at does not run" \
    'ok  best_seller has not run: no live node reads what it writes'
shows "which computations ran, and because of what" '^  ran +amounts/1 +prices#/tea 450 -> 500$'
shows "which did not, because nothing they read has changed" '^ +nothing it read has changed: '
shows "an unchanged result that stops the wave" \
    'shortages/tea .*same result: runs no reader'
shows "and what is behind it not running" 'ran 0 times: the wave stops there'
shows "the branch of an ifElse that runs when it is taken" 'ok  reduced has run 1 time'
shows "a gate in time" 'ok  not yet: it runs when nothing has changed for 400 ms'
shows "one run for two changes behind the gate" 'ok  two sales, 1 draft'
shows "a pull" 'ok  it ran 1 time, and says "cup"'
shows "a conflicting commit refused" 'ok  refused: the sale'
shows "and retried" 'ok  the handler ran 2 times, .* took effect 1 time'
shows "with the right result" 'ok  10 - 1 - 2 = 7 packets are left'
shows "an event delivered twice" 'ok  second delivery: HD_EXISTS'
shows "and handled once" 'ok  sold: 1'
shows "why a number is there, down to its commit" \
    '^ +<- prices#/cup 750 -> 800, a commit of this program$'
shows "a process that is killed" 'ok  process [0-9]+ died of signal 9'
shows "nothing lost" 'ok  7 orders of 7, '
shows "zero re-runs" 'ok  of 18 computations 0 ran again; '
shows "an event of the killed process, handled once" 'ok  its last order, delivered again: HD_EXISTS'
shows "where a workflow stood when its process was killed" '^  open +pack  '
shows "that its finished steps are not repeated, and the others are done" \
    'ok  begun before the kill \+ after it: charge 1 \+ 0, pack 1 \+ 1, ship 0 \+ 1$'
shows "who did what" 'ok  result: charged by ([0-9]+), packed by ([0-9]+), shipped by \2$'

fits() { ! sed '/^  \$ /d' demo.txt | grep -E '^.{81,}'; }
check "it fits into 80 columns" holds fits
check "without a terminal there are no colours" holds test "$(grep -c "$(printf '\033')" demo.txt)" = 0
check "it leaves a file in order" gives 0 "shop/shop.db: in order" db check shop/shop.db
check "with what was sold" gives 0 "7" get shop/shop.db 'main/shop/orders#/length'
delivered() { "$heddle" workflow ls shop/shop.db | grep -qE '^delivery/web-18 +done'; }
check "and a workflow that is done" holds delivered
commands_at_its_end() {
    sed -n 's/^  \$ heddle \([^#]*\).*/\1/p' demo.txt | grep -v -e ' \.\.\.' -e demo >commands.txt
    test -s commands.txt && cd shop || return 1
    while read -r line; do
        "$heddle" $line || { cd ..; return 1; }
    done <../commands.txt
    cd ..
}
check "the commands at its end work" holds commands_at_its_end

check "a file that is there is left alone" fails 3 "shop/shop.db exists already" demo --fast --dir shop
check "and so is a file that is no folder" fails 6 "cannot make the folder" \
    demo --fast --dir demo.txt/x
check "or is to be one" fails 6 "cannot make the folder demo.txt: Not a directory" demo --fast --dir demo.txt
check "there is no JSON of it" fails 1 "it has no JSON" demo --json

# The shop without the story, for askers and customers.
served() { # served COMMAND: while the shop is open
    : >serve.txt
    "$heddle" demo --serve --dir shop >serve.txt 2>&1 &
    server=$!
    until_true grep -q "Ctrl-C closes it" serve.txt && "$@"
    good=$?
    kill -INT $server
    wait $server && return $good
}
sells() { "$heddle" send shop/shop.db main/shop/checkout '{"item": "tea", "count": 1}' --id web-19 \
    --wait | grep -q '"id": 8' && until_true grep -q "Green tea 5.00,  5 left" serve.txt; }
resumed() { "$heddle" why shop/shop.db main/shop/earned >why.txt && grep -q "need not run" why.txt &&
    grep -q "main/shop/subtotal  *[n0-9]" why.txt && ! grep -E '.{81}' why.txt || { cat why.txt; false; }; }
check "what was taken up again says why it did not run" holds served resumed
check "it opens the shop again, and sells" holds served sells
check "what came about because of much is folded" holds sh -c '"$0" log shop/shop.db main/shop/total >log.txt && ! grep -E ".{81}" log.txt' "$heddle"
