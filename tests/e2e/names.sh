# names.sh -- names with control characters: no command sends one to the terminal.

"${heddle%/*}/tests/e2e/odd_names" odd.db >ready 2>&1 & pid=$!
check "a program with odd names serves" holds until_true grep -q ready ready
red=$(printf '\033[31m\302\233')
c1=$(printf '\302\233')
has_controls() { LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]\\|\302[\200-\237]')" "$1"; }
tame() { "$heddle" "$@" >seen 2>&1; [ -s seen ] && ! has_controls seen || { cat -v seen; false; }; }
json() { tame "$@" --json && python3 -c 'import json
for line in open("seen"): json.loads(line)'; }
ran() { "$heddle" why odd.db "copy$red" | grep -q ", 1 run"; }
check "it runs" holds until_true ran
printf 'a\302\233\n' >wild
check "what would reach the terminal is noticed here" holds has_controls wild

for arguments in graph "graph --dot" "trace --on" trace stats; do
    set -- $arguments
    verb=$1
    shift
    check "$arguments" holds tame "$verb" odd.db "$@"
    [ "$arguments" = "graph --dot" ] || check "$arguments --json" holds json "$verb" odd.db "$@"
done
for name in "copy$red" "unseen$red" "complain$red" "main/out#/k$red" "main/in$c1#/k$red" "main/none$c1"; do
    shown=$(printf %s "$name" | tr -d '\033\302\233')
    check "why $shown" holds tame why odd.db "$name"
    check "why-not $shown" holds tame why-not odd.db "$name"
    check "why $shown --json" holds json why odd.db "$name"
    check "why-not $shown --json" holds json why-not odd.db "$name"
done
check "a node that is not there is named" holds tame why odd.db "x$red"
check "ls" holds tame ls odd.db main
check "ls --long" holds tame ls odd.db main --long
check "ls --json" holds json ls odd.db main
check "get" holds tame get odd.db "main/in$c1"
check "get --json" holds json get odd.db "main/in$c1"
check "log" holds tame log odd.db main
check "log --json" holds json log odd.db main
check "watch" holds tame watch odd.db main --now --count 1
check "watch --json" holds json watch odd.db main --now --count 1
"$heddle" send odd.db "main/stream$c1" "\"$c1\"" >id
check "events" holds tame events odd.db
check "events --json" holds json events odd.db
check "db stats" holds tame db stats odd.db
check "db export" holds tame db export odd.db
kill $pid; wait $pid 2>/dev/null

cat >bell.json <<'EOF'
{"heddle": 1, "name": "bell", "functions": [{"name": "run", "nodes": [{"id": "in", "kind": "ENTRY"},
 {"id": "b", "kind": "BRANCH", "when": [["cmp", "a\u009bb\u007fc", "==", "x"]]}, {"id": "r", "kind": "RETURN"}, {"id": "s", "kind": "RETURN"}],
 "edges": [["in", "b"], ["b", "r", "GUARD", 0], ["b", "s", "GUARD", 1]]}]}
EOF
"$heddle" workflow register bell.db bell.json >/dev/null
for form in text mermaid dot svg json; do
    check "workflow graph --as $form" holds tame workflow graph bell.db bell --as $form
done
check "a key with one is refused" fails 4 "control characters" workflow start bell.db bell --key "a$c1"

again() { "$heddle" db export odd.db >a && "$heddle" db import again.db a && "$heddle" db export again.db | cmp - a; }
check "what is exported is what is imported" holds again
in_a_file() {
    "$heddle" set "file$red.db" main/a 1
    for verb in check repair stats export vacuum prune checkpoint; do
        check "db $verb of a file with such a name" holds tame db $verb "file$red.db"
    done
    check "db backup, too" holds tame db backup "file$red.db" "copy$red.db"
    # A file in which a stranger has written what heddle does not accept as an id.
    python3 - <<'END'
import sqlite3
db = sqlite3.connect("again.db")
db.execute("update head set id = 'wild' || char(27) || '[31m' where id = 'out'")
db.commit()
END
    check "ls of a hostile file" holds tame ls again.db main
    check "db check of one" holds tame db check again.db
    check "db repair of one" holds tame db repair again.db
}
on_server || in_a_file
