# cells.sh -- get, set, patch, rm, ls.

check "set creates the file, get prints the value" gives 0 "" \
    set shop.db main/stock '{"pears": 3, "apples": 12}'
check "values print as JSON" gives 0 '{"apples": 12, "pears": 3}' get shop.db main/stock
check "--json prints one canonical line" gives 0 '{"apples":12,"pears":3}' \
    get --json shop.db main/stock
check "a path names a place" gives 0 12 get shop.db main/stock#/apples
check "several cells are printed in turn" gives 0 "12
3" get shop.db main/stock#/apples main/stock#/pears
check "missing objects on the way are made" gives 0 "" set shop.db main/deep#/a/b/c true
check "and are there" gives 0 '{"a":{"b":{"c":true}}}' get --json shop.db main/deep
check "a negative number is an operand, not an option" gives 0 "" set shop.db main/t -5
check "and is stored" gives 0 -5 get shop.db main/t
check "--text stores text as it is" gives 0 "" set --text shop.db main/name 'Ada "the" first'
check "--text prints text as it is" gives 0 'Ada "the" first' get --text shop.db main/name
from_stdin() { printf 'two\nlines "\n' | "$heddle" set --text shop.db main/lines - && "$heddle" get shop.db main/lines >out &&
    [ "$(cat out)" = '"two\nlines \""' ] || { cat out; false; }; }
check "--text - is read from stdin, without the last end of line" holds from_stdin
"$heddle" rm shop.db main/lines
check "a kind that is too long is not cut" fails 4 "at most 63 bytes" \
    set shop.db main/lines 1 --kind "$(python3 -c 'print("k" * 64)')"
check "without it, text prints as JSON" gives 0 '"Ada \"the\" first"' get shop.db main/name

echo '[1, 2.5, null, "é"]' >value.json
from_stdin() { "$heddle" set shop.db main/in - <value.json; }
check "- reads the value from stdin" holds from_stdin
check "with every kind of value in it" gives 0 '[1,2.5,null,"é"]' get --json shop.db main/in

check "several cells are set in one commit" gives 0 "" set shop.db main/p 1 other/q 2
check "in both spaces" gives 0 "1
2" get shop.db main/p other/q
check "a cell without a value is refused" fails 1 "other/q has no value" \
    set shop.db main/p 1 other/q

check "--if: a value that is the expected one is replaced" gives 0 "" \
    set shop.db main/stock#/apples 11 --if 12
check "--if: another is not" fails 3 "not the one given" set shop.db main/stock#/apples 10 --if 12
check "and nothing has changed" gives 0 11 get shop.db main/stock#/apples
check "--new makes a document" gives 0 "" set --new shop.db main/once 1
check "--new refuses one that exists" fails 3 "exists already" set --new shop.db main/once 2

patch='[{"op":"increment","path":"/apples","value":-1},{"op":"append","path":"/seen","value":"x"},
        {"op":"set","path":"/plums","value":1},{"op":"remove","path":"/pears"}]'
check "patch changes several places" gives 0 "" patch shop.db main/stock "$patch"
check "all of them" gives 0 '{"apples":10,"plums":1,"seen":["x"]}' get --json shop.db main/stock
check "a patch with a bad operation is refused" fails 4 "op" \
    patch shop.db main/stock '[{"op":"set","path":"/x","value":1},{"op":"twist","path":"/y"}]'
check "as a whole" fails 2 'has no "x"' get shop.db main/stock#/x

check "rm removes a key" gives 0 "" rm shop.db main/stock#/seen
check "rm removes a document" gives 0 "" rm shop.db main/deep
check "which is then not there" fails 2 "no document main/deep" get shop.db main/deep
check "rm of what is not there fails" fails 2 "not there" rm shop.db main/deep
check "unless --force" gives 0 "" rm --force shop.db main/deep

check "ls lists the spaces" gives 0 "main
other" ls shop.db
check "ls lists documents in order of id" gives 0 "main/in
main/name
main/once
main/p
main/stock
main/t" ls shop.db main
check "by prefix" gives 0 "main/name" ls shop.db main/na
check "set gives a document a kind" gives 0 "" set shop.db main/order-1 '{}' --kind order
check "ls goes on after an id" gives 0 "main/order-1" ls shop.db main/ --after order- --limit 1
check "or after a name that it has printed" gives 0 "main/t" ls shop.db main --after main/stock
check "ls lists by kind" gives 0 "main/order-1" ls shop.db main --kind order
listed_as_json() { "$heddle" ls shop.db main/order --json | grep -qx \
    '{"space":"main","id":"order-1","kind":"order","seq":[0-9]*}'; }
check "ls --json has space, id, kind and seq" holds listed_as_json

check "a user's document is his" gives 0 "" set shop.db main@user/note 1 --user ann
check "a space that is not there is told, with the nearest" fails 2 "Did you mean main" get shop.db mian/note
check "not the default user's" fails 2 "no document" get shop.db main@user/note
check "he reads it" gives 0 1 get shop.db main@user/note --user ann
check "and is shown it" gives 0 "main@user/note" ls shop.db main/not --user ann

check "a link is followed" gives 0 "" set shop.db main/l '{"$link":{"id":"stock","path":"/apples"}}'
check "to its value" gives 0 10 get shop.db main/l
check "or printed, with --link" gives 0 '{"$link":{"id":"stock","path":"/apples"}}' \
    get --link --json shop.db main/l

check "a way into a document is suggested where a document was named" fails 2 "Did you mean main/stock#/apples?" \
    get shop.db main/stock/apples
kept() { "$heddle" send shop.db main/buy 1 >id 2>err && ! "$heddle" ls shop.db main | grep -q event/ &&
    "$heddle" ls shop.db main --all | grep -q "main/event/$(cat id)" && "$heddle" ls shop.db main/event/ | grep -q "$(cat id)"; }
check "ls hides what the library keeps for itself, unless asked" holds kept
living() { "$heddle" db stats shop.db --json | grep -q '"sessions":0,"readers":0'; }
check "db stats counts sessions that live" holds living
