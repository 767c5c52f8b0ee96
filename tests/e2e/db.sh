# db.sh -- the store: check, stats, upkeep, export, import. What files alone have is in db_file.sh.

"$heddle" set shop.db main/stock '{"apples": 12, "odd": {"$double": "NaN"}, "$$cost": 1}' \
    main/link '{"$link":{"id":"stock"}}' other/text '"a\nb é \u0001"'
"$heddle" set shop.db main/order-1 '{"sum": 5}' --kind order
"$heddle" set shop.db main@user/note '"mine"' --user ann
python3 -c 'import json; print(json.dumps({"k%d" % i: "x" * 40 for i in range(2000)}))' |
    "$heddle" set shop.db main/large -
for i in 1 2 3; do "$heddle" set shop.db "main/large#/k$i" $i; done

check "a good file is in order" gives 0 "shop.db: in order" db check shop.db
stats() { "$heddle" db stats shop.db --json | python3 -c '
import json, sys
s = json.load(sys.stdin)
kinds = {(d["space"], d["kind"]): d["count"] for d in s["documents"]}
assert kinds == {("main", ""): 3, ("main", "order"): 1, ("other", ""): 1}, kinds
assert s["large_documents"] == 1 and s["format"] >= 1 and s["log_rows"] == 7, s
assert [x["space"] for x in s["spaces"]] == ["main", "other"], s'; }
check "stats counts documents by space and kind" holds stats
check "stats reads well" holds sh -c '"$0" db stats shop.db | grep -q "^  order  *1$"' "$heddle"

export_import() { "$heddle" db export shop.db >a.jsonl && "$heddle" db import new.db <a.jsonl &&
    "$heddle" db export new.db >b.jsonl && cmp a.jsonl b.jsonl && [ "$(wc -l <a.jsonl)" = 6 ]; }
check "export, import, export: the same lines" holds export_import
check "import makes a file in order" gives 0 "new.db: in order" db check new.db
check "kinds come along" gives 0 "main/order-1" ls new.db main --kind order
check "users' documents come along" gives 0 '"mine"' get new.db main@user/note --user ann
check "large documents are whole" gives 0 3 get new.db main/large#/k3
check "--space exports one space" gives 0 \
    '{"space":"other","id":"text","value":"a\nb é \u0001"}' db export shop.db --space other
check "a space that is not there is not exported" fails 2 "no space" db export shop.db --space othr
check "a folder has no lines" fails 6 "Is a directory" db import folder.db .
check "import --new refuses what exists" fails 3 "exists already" db import new.db a.jsonl --new
check "import tells how many" gives 0 '{"documents":6}' db import new.db a.jsonl --json
long_names() { python3 -c '
for n in "12": print("{\"space\":\"%s\",\"id\":\"a\",\"kind\":\"%s\",\"value\":%s}" % ("s" * 300 + n, "k" * 60, n))' |
    "$heddle" db import long.db && "$heddle" db stats long.db --json | python3 -c '
import json, sys
s = json.load(sys.stdin)
assert [x["space"] for x in s["spaces"]] == ["s" * 300 + n for n in "12"], s
assert [(x["space"], x["kind"], x["count"]) for x in s["documents"]] == [("s" * 300 + n, "k" * 60, 1) for n in "12"], s'; }
check "stats has names of any length" holds long_names
printf '%s\n' '{"space":"m","id":"a","knid":"x","value":1}' >odd.jsonl
check "a key that no line has is not left out" fails 4 'line 1: .*"knid"' db import bad.db odd.jsonl
printf '{"space":"m","id":"a","value":1}\n\n{"space":"m","id":"b","value":[}\n' >bad.jsonl
check "a malformed line is named" fails 4 "line 3, column 32" db import bad.db bad.jsonl
echo '{"space":"m","value":1}' >short.jsonl
check "so is an incomplete one" fails 4 'line 1: "space", "id" or' db import bad.db short.jsonl
printf '%s\n' '{"space":"main","id":"a\u0000b","value":1}' >nul.jsonl
check "a name with a NUL is not cut short" fails 4 'line 1: "id" .* NUL' db import bad.db nul.jsonl
printf '%s\n' '{"space":"main","id":"a","kind":7,"value":1}' >kind.jsonl
check "what is no text is not left out" fails 4 'line 1: "kind" must be' db import bad.db kind.jsonl
printf '%s\n' '{"space":"main","id":"a","meta":[1],"value":1}' >meta.jsonl
check "nor what are no properties" fails 4 'line 1: "meta" must be' db import bad.db meta.jsonl
long_users() { python3 -c '
for n in "12": print("{\"space\":\"main\",\"scope\":\"user\",\"instance\":\"%s\",\"id\":\"a\",\"value\":%s}"
                     % ("u" * 600 + n, n))' >users.jsonl && "$heddle" db import users.db users.jsonl &&
    "$heddle" db export users.db | cmp - users.jsonl; }
check "users with long names keep what is theirs" holds long_users
many() { python3 -c 'for i in range(2500):
    print("{\"space\":\"m\",\"id\":\"d%04d\",\"kind\":\"k\",\"meta\":{\"n\":%d},\"value\":{\"i\":%d}}" % (i, i, i))' \
    >many.jsonl && "$heddle" db import many.db many.jsonl && "$heddle" db export many.db | cmp - many.jsonl; }
check "several thousand lines, with metadata, survive" holds many

same_export() { "$heddle" db export "$1" | cmp - a.jsonl; }
upkeep() { "$heddle" db "$1" shop.db --json | python3 -c '
import json, os, sys
r = json.load(sys.stdin)
left = int(os.environ.get("HD_STORE") == "postgres") # a server keeps the last row
assert r["after"]["tail_rows"] == 0, r
assert sys.argv[1] == "checkpoint" or r["after"]["log_rows"] <= left, r
assert sys.argv[1] != "vacuum" or r["after"]["bytes"] <= r["before"]["bytes"], r' "$1"; }
check "checkpoint folds the log" holds upkeep checkpoint
check "prune deletes what is folded" holds upkeep prune
check_file "vacuum is harmless" holds upkeep vacuum
check "nothing is lost by any of them" holds same_export shop.db
check "the file is in order" gives 0 "shop.db: in order" db check shop.db
