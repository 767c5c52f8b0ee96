# log.sh -- the commits of a space.

"$heddle" set shop.db main/a 1
"$heddle" set shop.db main/b '{"x": 1}' other/c true
"$heddle" patch shop.db main/b '[{"op":"set","path":"/y","value":[2]}]'

seqs() { "$heddle" log shop.db "$@" --json | sed 's/.*"seq":\([0-9]*\).*/\1/' | tr '\n' ' '; }
seqs_are() { want=$1; shift; [ "$(seqs "$@")" = "$want" ] || { seqs "$@"; false; }; }
check "log prints commits, newest first" holds seqs_are "3 2 1 " main
check "--reverse: oldest first" holds seqs_are "1 2 3 " main --reverse
check "--limit: the last ones" holds seqs_are "3 2 " main --limit 2
check "--after: what is new" holds seqs_are "3 " main --after 2
check "of one document" holds seqs_are "3 2 " main/b
check "of one cell" holds seqs_are "3 2 " "main/b#/y"
check "of another" holds seqs_are "2 " "main/b#/x"
"$heddle" set shop.db other@user/d 1
check "of a user's document" holds seqs_are "2 " other@user/d
check "each space counts by itself" holds seqs_are "2 1 " other
tells_operations() { "$heddle" log shop.db main/b --limit 1 --json |
    grep -q '"class":"source".*"documents":\[{"id":"b","operations":\[\["set","/y",\[2\]\]\]}\]'; }
check "a commit tells its operations" holds tells_operations
reads_well() { [ "$("$heddle" log shop.db main/b --limit 1 | sed 's/session .*/session S/')" = \
    '       3  source by session S
          set b#/y [2]' ]; }
check "and reads well" holds reads_well
check "a space that is not there" fails 2 "no space" log shop.db nowhere
check "log of a slip says so" fails 2 "there is no document main/bb" log shop.db main/bb
check "why, too" fails 2 "there is no document main/bb" why shop.db main/bb
check "prune forgets them" holds "$heddle" db prune shop.db
check "log has nothing to say then" gives 0 "" log shop.db main
check "the values are still there" gives 0 '{"x":1,"y":[2]}' get --json shop.db main/b
