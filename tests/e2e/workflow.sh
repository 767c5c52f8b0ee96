# workflow.sh -- workflows from the command line: registered, started, looked at, steered, and run by a program that is
# killed in the middle.

shop=${heddle%/*}/tests/e2e/workflow_shop
irs=$here/workflows
start_flow_shop() { # start_flow_shop ARGUMENTS...; leaves its number in $pid
    : >ready
    "$shop" "$@" >ready 2>shop.err &
    pid=$!
    until_true grep -q ready ready
}
flow() { "$heddle" workflow "$@"; }
says() { # says PATTERN ARGUMENTS...
    pattern=$1
    shift
    flow "$@" 2>&1 | grep -q -- "$pattern" || { flow "$@"; false; }
}
narrow() { flow "$@" >wide 2>&1; ! grep -E '.{81}' wide || { cat wide; false; }; }

# ---- without a program

check "register stores workflows" holds says "^registered data_pipeline, version ~" register w.db "$irs/pipeline.json"
check "several, from files and stdin" holds sh -c \
    '"$0" workflow register w.db "$1/approval.json" - <"$1/steps.json" | grep -c registered | grep -qx 2' "$heddle" "$irs"
check "--json has name and version" holds says '^{"name":"fails","version":"~' register w.db "$irs/fails.json" --json
printf '{"heddle":1,"name":"bad","functions":[{"name":"run","nodes":[{"id":"in","kind":"ENTRY"}],"edges":[["in","out"]]}]}' >bad.json
check "a wrong one is refused with its place" fails 4 'bad.json: /functions/run/edges/0: .*out' workflow register w.db bad.json
printf '{"heddle":1,\n"name":}' >broken.json
check "malformed JSON with line and mark" fails 4 "broken.json, line 2" workflow register w.db broken.json
check "a missing file is named" fails 2 "none.json" workflow register w.db none.json

check "graph: nodes and edges by their names" holds says "loop_head  LOOP_HEAD  deps_required 1" graph w.db data_pipeline
for word in FORWARD CONTINUE BREAK BACK; do
    check "graph: $word" holds says "$word  *-> " graph w.db data_pipeline
    check "graph --json: $word" holds says "\"kind\":\"$word\"" graph w.db data_pipeline --json
done
check "graph as mermaid" holds says "^flowchart TD" graph w.db data_pipeline --as mermaid
check "graph as dot" holds says "^digraph workflow" graph w.db data_pipeline --as dot
drawn() { flow graph w.db approval --as svg >a.svg && python3 -c '
import sys, xml.etree.ElementTree as tree
boxes = [e for e in tree.parse("a.svg").iter() if "box" in e.get("class", "").split()]
assert len(boxes) == 17, len(boxes)'; }
check "graph as SVG, a box for each node" holds drawn
check "an unknown form is refused" fails 1 "svg" workflow graph w.db approval --as png
check "an unknown workflow names the nearest" fails 2 "Did you mean approval" workflow graph w.db aproval
check "explain: parallel" holds says "fan  FAN_HEAD, parallel" explain w.db data_pipeline
check "explain: why not" holds says "reads sum, which the one before has assigned" explain w.db steps
check "explain --json" holds says '"parallel":true' explain w.db data_pipeline --json

check "start prints the instance" gives 0 "data_pipeline/one" workflow start w.db data_pipeline --key one
check "twice with one key is one instance" holds says "was started before" start w.db data_pipeline --key one
check "start --json says so" gives 0 '{"id":"data_pipeline/one","existed":true}' workflow start w.db data_pipeline --key one --json
check "an unknown input is refused" fails 4 'no input "fan_ou"' workflow start w.db data_pipeline '{"fan_ou": 3}'
check "an unknown workflow is refused" fails 2 "no workflow" workflow start w.db nothing
check "a key with a # is refused" fails 4 "without '/', '#' and control" workflow start w.db data_pipeline --key 'a#b'
check "ls: it is queued until a program runs workflows" holds says "^data_pipeline/one  *queued" ls w.db
check "ls by status" gives 0 "there are no instances" workflow ls w.db --status done
check "ls by workflow, as JSON" holds says '^{"id":"data_pipeline/one","workflow":"data_pipeline","status":"queued"' ls w.db data_pipeline --json
check "ls of a workflow that is not there names the nearest" fails 2 "Did you mean data_pipeline" workflow ls w.db data_pipelin
check "an unknown status is refused" fails 1 "queued, running" workflow ls w.db --status gone
check "show: its steps" holds says "  fetch_items" show w.db data_pipeline/one
check "show takes the cell's name, too" holds says "  fetch_items" show w.db main/workflow/data_pipeline/one
check "why-not: it is queued" holds sh -c '"$0" why-not w.db data_pipeline/one | grep -q "begins when a program runs"' "$heddle"
check "show --json is the document with its id" holds says '"id":"data_pipeline/one"' show w.db data_pipeline/one --json
check "a misspelt instance names the nearest" fails 2 "Did you mean data_pipeline/one" workflow show w.db data_pipeline/on
flow register q.db "$irs/nap.json" >/dev/null
flow start q.db nap --key asked >/dev/null
flow pause q.db nap/asked >/dev/null 2>remark
flow cancel q.db nap/asked >/dev/null
check "show: what was asked while no program runs it" holds says "asked for, and not done yet: pause, cancel" show q.db nap/asked
check "show --json: the same" holds says '"asked":."pause","cancel"' show q.db nap/asked --json
check "why-not --json: the same" holds sh -c '"$0" why-not q.db nap/asked --json | grep -q "\"asked\":\[\"pause\",\"cancel\"\]"' "$heddle"
check "rerun: a cancel that was asked for is not advised again" fails 3 "A cancel is asked for" workflow rerun q.db nap/asked
check "rm: the same" fails 3 "A cancel is asked for" workflow rm q.db nap/asked
check "a change waits for a program, which the command says" holds grep -q "the request is stored; the next program that runs nap/asked carries it out" remark
check "why-not: the same" holds sh -c '"$0" why-not q.db nap/asked | grep -q "not done yet: pause, cancel"' "$heddle"
check "await with a limit" fails 6 "not over yet" workflow await w.db data_pipeline/one --timeout 0.1 --quiet

# ---- a program runs them

check "a program goes on with it" holds start_flow_shop w.db calls
check "and the result is the seed's" gives 0 270 workflow await w.db data_pipeline/one --timeout 20 --quiet
counted() { [ "$(grep -c "^$1\$" calls)" = "$2" ]; }
check "with 8 parallel elements" holds counted process_item 8
check "and 4 iterations" holds counted aggregate_chunk 4
check "show: the result" holds says "result *270" show w.db data_pipeline/one
kill "$pid"; wait "$pid" 2>/dev/null

# ---- killed in the middle

flow start w.db steps --key k >/dev/null
rm -f calls
check "a program works at it" holds start_flow_shop w.db calls
check "some steps are done" holds until_true lines_in calls 5
kill -9 "$pid"; wait "$pid" 2>/dev/null
check "killed, the instance is where it was" holds says '"status":"running"' show w.db steps/k --json
before=$(wc -l <calls)
check "another program goes on" holds start_flow_shop w.db calls
check "to the right result" gives 0 190 workflow await w.db steps/k --timeout 20 --quiet
check "at most one step has run twice" holds test "$(wc -l <calls)" -le 21
check "and what was done stays done" holds test "$before" -ge 5
kill "$pid"; wait "$pid" 2>/dev/null

# ---- what is past, and what is to come

start_flow_shop p.db
flow register p.db "$irs/passed.json" >/dev/null
flow start p.db passed --key k >/dev/null
until_true says "open  *go #wait-go\|waits  *go #wait-go" show p.db passed/k
check "show: a loop that is over" holds says "done  *for$" show p.db passed/k
check "show: branches that have come together" holds says "done  *echo #echo.2$" show p.db passed/k
check "show: what raised and was caught" holds says "passed  *fail #try/fail" show p.db passed/k
check "show: of which of two was the first one cannot tell" holds says "passed  *limit" show p.db passed/k
check "show: parallel parts that are open" holds says "runs  *gather.2  *1 of 2" show p.db passed/k
check "show: the branch that is done" holds says "done  *echo #echo.4" show p.db passed/k
check "show: what is to come" holds says "to come  *echo #echo.5" show p.db passed/k
check "show: variables as the program has them" holds says 'variables {.*"pair":\[\[1\],-1\]' show p.db passed/k
hides() { ! flow "$@" | grep -E '%t|\$ref|Traceback'; }
check "show: nothing of the compiler's" holds hides show p.db passed/k
check "show: somebody runs it" holds sh -c '! "$0" workflow show p.db passed/k | grep -q "no program"' "$heddle"
flow register p.db "$irs/spared.json" >/dev/null
flow start p.db spared --key k >/dev/null
until_true says "waits  *go #wait" show p.db spared/k
check "show: an each may have had nothing to do" holds says "^  passed  *echo #none" show p.db spared/k
check "show: what raised is a result of the gather" holds says "^  passed  *fail #bad$" show p.db spared/k
check "show: and nobody knows of the step behind it" holds says "^  -  *echo #behind" show p.db spared/k
check "show: what raised left the gather, and was caught" holds says "^  -  *fail #bad.2" show p.db spared/k
check "show: what is certain" holds says "^  done  *echo #certain" show p.db spared/k
flow cancel p.db spared/k >/dev/null
flow register p.db "$irs/left.json" >/dev/null
flow start p.db left --key k >/dev/null
until_true says "done  *echo #early" show p.db left/k
check "show: a branch tells nothing of another" holds says "to come  *echo #never" show p.db left/k
flow signal p.db left/k soon >/dev/null
until_true says "waits  *clean" show p.db left/k
check "show: a step of a branch that was left has not run" holds says "^  -  *echo #never" show p.db left/k
check "show: nothing comes after an end" holds says "^  -  *echo #after" show p.db left/k
check "cancel: the instance is ending" gives 0 "left/k is ending already: what it still does is cleaning up" \
    workflow cancel p.db left/k
check "rerun: the instance is ending" fails 3 "It is ending: what it still does is cleaning up" workflow rerun p.db left/k
check "rm: the instance is ending" fails 3 "It is ending: what it still does is cleaning up" workflow rm p.db left/k
flow signal p.db left/k clean >/dev/null
check "it is over when that is done" fails 3 "left/k has failed: ValueError: x" workflow await p.db left/k --timeout 20 --quiet
check "show: nor does it say so then" holds says "^  -  *echo #never" show p.db left/k
flow register p.db "$irs/undo.json" >/dev/null
flow start p.db undo --key k >/dev/null
until_true says "waits  *go #wait" show p.db undo/k
check "show: a loop that may come" holds says "^  to come  *each" show p.db undo/k
check "show: and what stands in it" holds says "^  to come  *echo #back" show p.db undo/k
check "why-not: one step, and the command for it" holds sh -c '"$0" why-not p.db undo/k | grep -qx "  heddle workflow signal [^ ]* undo/k go JSON"' "$heddle"
flow signal p.db undo/k go >/dev/null
flow await p.db undo/k --timeout 20 >/dev/null 2>&1
check "show: a loop that is over, as the journal tells" holds says "^  done  *each" show p.db undo/k
check "show: what was done in it" holds says "^  done  *echo #back" show p.db undo/k
kill -9 "$pid"; wait "$pid" 2>/dev/null
"$heddle" set p.db 'main/workflow/spared/k#/started' 9999999999999 >/dev/null
check "show: a clock that was ahead" holds says "started 2286.*, took 0 ms" show p.db spared/k
check "ls: the same" holds says "spared/k .*2286-11-.*  0 ms" ls p.db spared
check "show: nobody runs it" holds until_true says "no program runs it (process $pid has ended)" show p.db passed/k
check "workflow why: the same" holds until_true says "no program runs it (process $pid has ended)" why p.db passed/k
check "await: the same" fails 6 "no program runs passed/k; the next one goes on with it" workflow await p.db passed/k --timeout 0.1
check "await --json: as a remark" fails 6 '"warning":"no program runs passed/k' workflow await p.db passed/k --timeout 0.1 --json
check "why-not of an instance that there is not" fails 2 "there is no instance passed/n" why-not p.db passed/n
check "why-not of an unknown workflow: what is near" fails 2 "Did you mean passed/k" why-not p.db pased/k
check "the key is kept where only the workflow is near" fails 2 "Did you mean passed/zebra" why-not p.db pased/zebra
check_file "why-not of what nothing is near" fails 2 'p.db has no workflow and no space "nothing"' why-not p.db nothing/like
check "why of an unknown workflow" fails 2 "Did you mean passed/k" why p.db pased/k
check_file "why-not of a cell without a program says who could tell" fails 8 "no running program" why-not p.db main/total

# ---- failing, waiting, ending

flow start w.db fails --key f >/dev/null
flow start w.db approval --key a >/dev/null
start_flow_shop w.db
check "a failed instance has its exception and a status of its own" fails 3 "fails/f has failed: ValueError: it does not work" workflow await w.db fails/f --timeout 20 --quiet
check "--json has it on stdout" holds sh -c '"$0" workflow await w.db fails/f --json | grep -q "\"status\":\"failed\""' "$heddle"
check "and where it failed" holds says "error  *ValueError: it does not work, at try" show w.db fails/f
words=$(python3 -c 'print("many words " * 25 + "end")')
sed "s/\"fails\"/\"wordy\"/; s/\"args\": \[\]/\"args\": [\"$words\"]/" "$irs/fails.json" >wordy.json
flow register w.db wordy.json >/dev/null
flow start w.db wordy --key w --await >/dev/null 2>&1
check "show: a long error is whole" holds says "error  *ValueError: $words, at try" show w.db wordy/w
check "why-not: the same" holds says "has failed.*: ValueError: $words, at try" why-not w.db wordy/w
check "show: the step that failed" holds says "^  failed  *fail #try" show w.db fails/f
check "show: what is done, of one that is over" holds says "^  done  *fetch_items" show w.db data_pipeline/one
check_file "start of nothing makes no store" fails 2 "there is no file new.db" workflow start new.db steps
check "indeed" holds test ! -e new.db
flow register w.db "$irs/flaky.json" >/dev/null
lines() { flow start w.db flaky --key g --await >out.txt 2>&1; grep -q "^failed  *fail" out.txt && ! grep -q "^done" out.txt || { cat out.txt; false; }; }
check "await does not call a failed step done" holds lines
reason() { "$heddle" why w.db stubborn/h | grep -q "the attempt before raised ValueError: it does not work"; }
sed 's/"flaky"/"stubborn"/; s/0\.7/3600/' "$irs/flaky.json" >stubborn.json
flow register w.db stubborn.json >/dev/null
flow start w.db stubborn --key h >/dev/null
check "why: the reason of a retry" holds until_true reason
check "ls finds it by status" holds says "^fails/f " ls w.db --status failed
check "a signal that no step waits for is refused" fails 4 'no signal "aprove"; it waits for "' workflow signal w.db approval/a aprove true
check "a signal is kept" gives 0 "approval/a has the signal" workflow signal w.db approval/a approve true
check "pause" gives 0 "approval/a is being paused" workflow pause w.db approval/a
is_now() { flow ls w.db approval --status "$1" | grep -q "approval/a"; }
check "a paused instance says so" holds until_true is_now paused
check "resume" gives 0 "approval/a goes on" workflow resume w.db approval/a
check "and it runs" holds until_true is_now running
check "cancel" gives 0 "approval/a is being cancelled" workflow cancel w.db approval/a
check "a cancelled instance says so" fails 3 "is cancelled" workflow await w.db approval/a --timeout 20 --quiet
check "what is over is left alone" fails 3 "is over" workflow cancel w.db approval/a
kill "$pid"; wait "$pid" 2>/dev/null

for words in "ls w.db" "show w.db data_pipeline/one" "graph w.db data_pipeline" "explain w.db data_pipeline" "await w.db data_pipeline/one"; do
    check "workflow $words fits 80 columns" holds narrow $words
done
flow start w.db steps '{"count": 60}' --key t >/dev/null
# The command looks on before anything runs it.
watched() {
    terminal workflow await w.db steps/t >tree.out 2>&1 &
    looker=$!
    until_true grep -q "no program runs it" tree.out
    start_flow_shop w.db
    wait "$looker"
    grep -q "no program runs it.*; the next one goes on with it" tree.out && grep -q "done .*slow" tree.out || { cat tree.out; false; }
}
# After a terminal has echoed ^C, its cursor is behind that: each drawing must begin with a carriage return.
drawn_from_the_left() {
    grep -q "$(printf '\r\033\\[[0-9]*A')" tree.out && ! grep -q "$(printf '[^\r]\033\\[[0-9]*A')" tree.out
}
# A title of more than one line would be left on the screen by each drawing.
titled() {
    long=$(printf '%0100d' 0)
    flow register t.db "$irs/nap.json" && flow start t.db nap --key "$long"
    terminal workflow await t.db "nap/$long" --timeout 0.1 --color never >title.out 2>&1
    grep -q 'nap/000*\.\.\.000*  queued' title.out && ! sed 's/\r//g; s/\x1b\[[0-9]*[A-Z]//g' title.out | grep '  queued' | grep -E '.{80}' || { cat title.out; false; }
}
if python3 -c 'import os; os.openpty()' 2>/dev/null; then
    check "on a terminal await cuts a name that is wider" holds titled
    check "it draws a tree of steps" holds watched
    check "each time from the left margin" holds drawn_from_the_left
    kill "$pid"; wait "$pid" 2>/dev/null
fi

# ---- what it has done

took() { flow show w.db data_pipeline/one | sed -n '1s/.*, took //p'; }
ended() { terminal workflow await w.db data_pipeline/one >tree.out 2>&1; grep -q "done.*  $(took)" tree.out || { cat tree.out; took; false; }; }
if python3 -c 'import os; os.openpty()' 2>/dev/null; then
    check "await of what is over shows how long it took, not how long ago it began" holds ended
fi
long=a_step_of_a_workflow_with_a_name_that_is_as_long_as_names_of_steps_come_to_be_now_and_then
long_key=the_order_of_a_customer_who_has_a_long_name_and_orders_a_lot
cat >long.json <<IR
{"heddle": 1, "name": "long", "journal": "steps", "functions": [{"name": "run",
 "nodes": [{"id": "in", "kind": "ENTRY"}, {"id": "$long", "kind": "ACTION", "action": "echo", "args": [1]},
  {"id": "end", "kind": "RETURN", "value": 3}], "edges": [["in", "$long"], ["$long", "end"]]}]}
IR
flow register w.db long.json >/dev/null
flow start w.db long --key "$long_key" >/dev/null
check "journal of an instance that waits for an engine" fails 2 "long/$long_key has not begun" workflow journal w.db "long/$long_key"
start_flow_shop w.db
printf '%s' '{"heddle": 1, "name": "lines", "journal": "steps", "functions": [{"name": "run", "nodes": [{"id": "in", "kind": "ENTRY"},
 {"id": "wait", "kind": "WAIT", "signal": "go"}, {"id": "out", "kind": "RAISE", "value": ["new", "ValueError", ["one\ntwo"]]}],
 "edges": [["in", "wait"], ["wait", "out"]]}]}' >lines.json
flow register w.db lines.json >/dev/null
flow start w.db lines --key l >/dev/null
flow signal w.db lines/l go >/dev/null
check "an error of two lines is told in one" fails 3 "lines/l has failed: ValueError: one two" workflow await w.db lines/l --timeout 20 --quiet
check "show has it in one, too" holds says "error  *ValueError: one two, at out" show w.db lines/l
check "journal: the name of a signal" holds says " signal   go\$" journal w.db lines/l
check "journal --json: the name of a signal" holds says '"signal":"go","what":"signal"' journal w.db lines/l --json
check "a long one" gives 0 3 workflow await w.db "long/$long_key" --timeout 20 --quiet
kill "$pid"; wait "$pid" 2>/dev/null
check "show does not cut names" holds says "done  *echo #$long\$" show w.db "long/$long_key"
check "ls does not cut names" holds says "^long/$long_key\$" ls w.db long
check "ls --wide: on one line" holds says "^long/$long_key  *done" ls w.db long --wide
check "a slip in a long name names the nearest" fails 2 "Did you mean long/$long_key" workflow show w.db "long/x$long_key"
check "journal: what it has done" holds says "^ *1  [0-9:]*  .* ms  done     $long\$" journal w.db "long/$long_key"
check "journal: to the end" holds sh -c '"$0" workflow journal w.db "$1" | tail -n 1 | grep -q " end$"' "$heddle" "long/$long_key"
check "journal --json: entries" holds sh -c '"$0" workflow journal w.db "$1" --json | head -n 1 | grep -q "\"seq\":0,\"what\":\"start\""' "$heddle" "long/$long_key"
check "journal --limit" holds sh -c '"$0" workflow journal w.db "$1" --limit 2 | wc -l | grep -qx 2' "$heddle" "long/$long_key"
check "without a journal it says how to get one" fails 2 'data_pipeline/one has no journal' workflow journal w.db data_pipeline/one

# ---- what it waits for

flow register w.db "$irs/orphan.json" "$irs/nap.json" "$irs/keeper.json" >/dev/null
flow start w.db orphan --key o >/dev/null
flow start w.db nap --key n >/dev/null
flow start w.db keeper --key k >/dev/null
start_flow_shop w.db
why_not() { # why_not PATTERN OPERAND
    "$heddle" why-not w.db "$2" | grep -q -- "$1" || { "$heddle" why-not w.db "$2"; false; }
}
check "why-not: no worker" holds until_true why_not "do  *no worker for unserved since [0-9][0-9]:" orphan/o
check "show: the same" holds says "^  no worker unserved #do" show w.db orphan/o
check "why-not of a step, with advice" holds why_not "start a worker" "orphan/o#do"
check "why-not: it sleeps" holds until_true why_not "nap  *sleeps until 20" nap/n
check "why-not: it waits for its child" holds until_true why_not "rest  *waits for its child nap/keeper:k\.[0-9.]* since" keeper/k
check "show: the same" holds says "^  waits  *nap #rest" show w.db keeper/k
check "why-not of a step that it does not stand at" fails 2 "does not stand at" why-not w.db orphan/o#end
check "why-not --json" holds sh -c '"$0" why-not w.db orphan/o --json | grep -q "\"state\":\"no worker\""' "$heddle"
check "why: the status" holds sh -c '"$0" why w.db fails/f | grep -q "fails/f has failed, since .*ValueError: it does not work"' "$heddle"
flow register w.db "$irs/nested.json" >/dev/null
flow start w.db nested --key n >/dev/null
check "why-not: of two fan-outs of one node" holds until_true why_not "inner  *waits for 1 of 1 arrivals at barrier items" nested/n
check "each says what it waits for" holds why_not "inner  *waits for 3 of 3 arrivals at barrier items" nested/n
check "and so does the one around them" holds why_not "outer  *waits for 2 of 2 arrivals at barrier all" nested/n
check "why-not of a barrier" holds why_not "outer  *waits for 2 of 2 arrivals at barrier all" nested/n#all
flow register w.db "$irs/meet.json" >/dev/null
flow start w.db meet --key m >/dev/null
flow signal w.db meet/m a >/dev/null
check "why-not of a node where paths meet" holds until_true why_not "meet  *waits for 2 of 3 arrivals" meet/m#meet
flow register w.db "$irs/helper.json" >/dev/null
flow start w.db helper --key h >/dev/null
flow signal w.db helper/h a >/dev/null
check "within a function that was called" holds until_true why_not "meet  *waits for 1 of 2 arrivals" helper/h#meet
flow signal w.db helper/h b >/dev/null
flow signal w.db helper/h y >/dev/null
check "and within a branch" holds until_true why_not "met  *waits for 1 of 2 arrivals" helper/h#met
flow cancel w.db helper/h >/dev/null
check "show: the branches of both" holds says "runs  *inner  *0 of 4" show w.db nested/n
flow cancel w.db nested/n >/dev/null
check "a queue is paused before anything waits in it" gives 0 "mail  any number of steps at once, paused" workflow queues w.db pause mail
flow register w.db "$irs/lined.json" >/dev/null
flow start w.db lined --key l >/dev/null
check "why-not: its queue is paused" holds until_true why_not "do  *waits in queue mail, which is paused, since" lined/l
check "why-not: and how it goes on" holds until_true why_not "^  heddle workflow queues [^ ]* resume mail" lined/l
check "it begins when the queue goes on" gives 0 "mail  any number of steps at once" workflow queues w.db resume mail
check "and ends" holds sh -c '"$0" workflow await w.db lined/l --timeout 20 --quiet' "$heddle"
check "why-not of instances fits 80 columns" holds sh -c '"$0" why-not w.db orphan/o >wide && ! grep -E ".{81}" wide' "$heddle"

mkfifo gate
"$heddle" workflow worker w.db unserved --exec 'cat gate' 2>away.err &
worker=$!
check "worker: where an engine serves no sockets, steps come through the store" holds until_true grep -q "doing steps of the workflows of" away.err
check "why-not: another process does it" holds until_true why_not "do  *a worker runs unserved on .*, process $worker since" orphan/o
check "show: the same" holds says "away  *do is done on .*, process $worker, since" show w.db orphan/o
check "why-not --json: the same" holds sh -c '"$0" why-not w.db orphan/o --json | grep -q "\"pid\":$1"' "$heddle" "$worker"
kill -9 "$worker"; wait "$worker" 2>/dev/null
check "when that process is killed its step waits again" holds until_true why_not "do  *no worker for unserved since" orphan/o
flow start w.db orphan --key p >/dev/null
"$heddle" workflow worker w.db unserved --exec 'echo 7' 2>/dev/null &
worker=$!
check "another does it" holds sh -c '"$0" workflow await w.db orphan/p --timeout 20 --quiet' "$heddle"
check "and what waited" holds sh -c '"$0" workflow await w.db orphan/o --timeout 20 --quiet' "$heddle"
kill "$worker"; wait "$worker" 2>/dev/null
flow start w.db orphan --key q >/dev/null
check "it leaves in order" holds until_true why_not "do  *no worker for unserved since" orphan/q

kill "$pid"; wait "$pid" 2>/dev/null
check "without the program the store tells" holds why_not "do  *waits for a worker for unserved since" orphan/q

flow register b.db "$irs/pipeline.json" >/dev/null
flow start b.db data_pipeline --key p >/dev/null
"$heddle" workflow worker b.db fetch_items --exec 'echo "[{\"id\": 1}, {\"id\": 2}, {\"id\": 3}]"' >/dev/null 2>&1 &
worker=$!
waits_at_barrier() { "$heddle" why-not b.db data_pipeline/p | grep -q "fan  *waits for 3 of 3 arrivals at barrier processed"; }
check "why-not: arrivals at a barrier" holds until_true waits_at_barrier
kill "$worker"; wait "$worker" 2>/dev/null

# ---- workers in other processes

cat >cries.json <<'IR'
{"heddle": 1, "name": "cries", "functions": [{"name": "run",
 "nodes": [{"id": "in", "kind": "ENTRY"}, {"id": "cry", "kind": "ACTION", "action": "cry", "args": []},
  {"id": "end", "kind": "RETURN", "value": null}], "edges": [["in", "cry"], ["cry", "end"]]}]}
IR
start_worker() { # start_worker ARGUMENTS...; leaves its number in $worker
    : >worker.ready
    python3 "$here/worker.py" "$@" >worker.ready 2>worker.err &
    worker=$!
    until_true grep -q ready worker.ready
}
if command -v python3 >/dev/null; then
    flow register v.db "$irs/pipeline.json" "$irs/steps.json" cries.json >/dev/null
    flow start v.db data_pipeline --key p >/dev/null
    flow start v.db cries --key c >/dev/null
    flow start v.db steps --key s >/dev/null
    sockets=v.db-workers
    on_server && sockets=workers.sock
    check "an engine serves workers" holds start_flow_shop v.db - serve
    check "its socket is the owner's alone" holds sh -c '[ "$(stat -c %a "$0")" = 600 ]' $sockets
    nonsense() { python3 -c '
import socket, sys
for garbage in (b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\2{}", b"\xff" * 1000, b""):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(garbage)
    s.shutdown(socket.SHUT_WR)
    while s.recv(4096): pass' $sockets; }
    check "one that speaks garbage is sent away" holds nonsense
    check "a worker in Python comes, and is killed in its fourth step" holds start_worker $sockets --threads 1 --die-after 4
    wait "$worker" 2>/dev/null
    check "another comes" holds start_worker $sockets
    check "the seed's example with a worker in Python" gives 0 270 workflow await v.db data_pipeline/p --timeout 30 --quiet
    check "a loop of twenty steps" gives 0 190 workflow await v.db steps/s --timeout 30 --quiet
    check "its exception crosses" fails 3 "cries/c has failed: KeyError: .*it hurts" workflow await v.db cries/c --timeout 30 --quiet
    kill "$worker"; wait "$worker" 2>/dev/null
    kill "$pid"; wait "$pid" 2>/dev/null
fi

# ---- actions as commands

cat >double.json <<'IR'
{"heddle": 1, "name": "double", "inputs": [{"name": "n", "default": 4}], "functions": [{"name": "run", "params": ["n"],
 "nodes": [{"id": "in", "kind": "ENTRY"}, {"id": "do", "kind": "ACTION", "action": "double", "args": {"n": ["name", "n"]},
  "into": ["name", "r"]}, {"id": "end", "kind": "RETURN", "value": ["name", "r"]}], "edges": [["in", "do"], ["do", "end"]]}]}
IR
cat >double.sh <<'SH'
n=$(sed 's/.*"n": *\([^}]*\)}.*/\1/')
case $n in
    null) exit ;;
    '"text"') echo nonsense; exit ;;
    '"fail"') echo "some words" >&2; echo "ValueError: $n is no number" >&2; exit 1 ;;
    '"odd"') echo "Weird.Class: x" >&2; exit 1 ;;
    '"env"') printf '"%s %s %s"\n' "$HEDDLE_ACTION" "$HEDDLE_INSTANCE" "$HEDDLE_ATTEMPT"; exit ;;
esac
echo $((n * 2))
SH
start_exec() { # start_exec ARGUMENTS...; leaves its number in $worker
    : >worker.err
    "$heddle" workflow worker "$@" 2>worker.err >worker.out &
    worker=$!
    until_true grep -q "Ctrl-C" worker.err
}
flow register d.db double.json >/dev/null
for key in null text fail odd env; do flow start d.db double "{\"n\": $([ $key = null ] && echo null || echo "\"$key\"")}" --key $key >/dev/null; done
check "worker: --exec is needed" fails 1 "exec" workflow worker d.db double
check "worker: where no engine runs, it runs the workflows itself" holds start_exec d.db double --exec "sh double.sh"
check "nothing printed is null" gives 0 null workflow await d.db double/null --timeout 20 --quiet
check "what is no JSON is an exception" fails 3 "ValueError: the command printed" workflow await d.db double/text --timeout 20 --quiet
check "an exit status is an exception, by the last line of stderr" fails 3 'ValueError: "fail" is no number' workflow await d.db double/fail --timeout 20 --quiet
check "a line with a class that is not known is whole" fails 3 'RuntimeError: Weird.Class: x' workflow await d.db double/odd --timeout 20 --quiet
check "the command knows what it does" gives 0 '"double double/env 1"' workflow await d.db double/env --timeout 20 --quiet
flow register d.db "$irs/told.json" >/dev/null
flow start d.db told --key a >/dev/null
check "the workflows that it runs wait for cells" holds until_true says "^  \(runs\|open\)  *heddle.wait" show d.db told/a
"$heddle" set d.db main/limit true
check "and go on" gives 0 1 workflow await d.db told/a --timeout 20 --quiet
check "log: which step it was" holds sh -c '"$0" log d.db main | grep -q "event by session ........, told/a#post$"' "$heddle"
check "and send events" holds sh -c '"$0" events d.db --waiting --json | grep -q "\"stream\":\"main/told\""' "$heddle"
flow register d.db "$irs/either.json" >/dev/null
check "start without inputs says which there are" fails 4 "Give its inputs: '{\"n\": ...}'" workflow start d.db either
flow start d.db either '{"n": 3}' --key a >/dev/null
check "of two ways it takes one" gives 0 1 workflow await d.db either/a --timeout 20 --quiet
check "show: which one, as the journal tells" holds says "done  *double #left" show d.db either/a
check "show: and not the other" holds says "-  *double #right" show d.db either/a
flow start d.db either "{\"n\": \"$(printf '%090d' 0)\"}" --key wide >/dev/null
check "show: what is too wide for the terminal has a line for each member" on_terminal 'input.* n = "0000' workflow show d.db either/wide
check "and in a file it is one object" holds says '^  input     {"n":"000' show d.db either/wide
kill "$worker"
wait "$worker" 2>/dev/null
check_file "it leaves no socket behind" holds test ! -e d.db-workers

flow start d.db double '{"n": 21}' --key one >/dev/null
flow start d.db double '{"n": "fail"}' --key two >/dev/null
start_flow_shop d.db - serve
check "worker: where an engine serves, it is one of its workers" holds start_exec d.db double --exec "sh double.sh" --jobs 2
check "and does its steps" gives 0 42 workflow await d.db double/one --timeout 20 --quiet
check "with their exceptions" fails 3 'ValueError: "fail" is no number' workflow await d.db double/two --timeout 20 --quiet
kill -9 "$pid"; wait "$pid" 2>/dev/null
check_file "when that engine is killed, it takes over" holds until_true grep -q "running the workflows" worker.err
kill "$worker"; wait "$worker" 2>/dev/null

# ---- again

flow register r.db double.json >/dev/null
flow start r.db double '{"n": 5}' --key a >/dev/null
start_exec r.db double --exec 'test -e ready.flag && echo 10'
check "it fails the first time" fails 3 "has failed" workflow await r.db double/a --timeout 20 --quiet
touch ready.flag
check "rerun: a node that the workflow does not have" fails 4 "no node" workflow rerun r.db double/a nothing
check "rerun: a node that is near" fails 4 "Did you mean do?" workflow rerun r.db double/a od
check "rerun: from the node that failed" gives 0 "double/a runs again" workflow rerun r.db double/a do
check "and it is done" gives 0 10 workflow await r.db double/a --timeout 20 --quiet
check "what is done cannot begin in the middle" fails 4 "done" workflow rerun r.db double/a do
check "an unknown input is refused, with those that there are" fails 4 'no input "m"; it has "n"' workflow start r.db double '{"m": 5}'
check "but from the beginning" gives 0 "double/a runs again" workflow rerun r.db double/a
check "to the same end" gives 0 10 workflow await r.db double/a --timeout 20 --quiet

# ---- gone

flow start r.db double '{"n": 5}' --key b >/dev/null
check "another is done" gives 0 10 workflow await r.db double/b --timeout 20 --quiet
check "rm: beside the program that runs them" gives 0 "double/b is removed" workflow rm r.db double/b
check "it is gone" fails 2 "double/b" workflow show r.db double/b
check "its key may be used again" gives 0 "double/b" workflow start r.db double '{"n": 5}' --key b
check "and is a new instance" gives 0 10 workflow await r.db double/b --timeout 20 --quiet
kill "$worker"; wait "$worker" 2>/dev/null
flow start r.db double '{"n": 5}' --key open >/dev/null
check "what is not over is not removed" fails 3 "double/open is not over" workflow rm r.db double/open
check "what is no more cannot be removed" fails 2 "double/none" workflow rm r.db double/none
rm_two() { flow rm r.db double/open double/b >out.txt 2>/dev/null; [ $? = 3 ] && grep -q "^double/b is removed" out.txt; }
check "one that cannot be removed keeps no other" holds rm_two
check "indeed" fails 2 "double/b" workflow show r.db double/b
check "prune: nothing is that old" gives 0 "0 instances removed" workflow prune r.db --older-than 1w
check "prune: nothing ended so" gives 0 "0 instances removed" workflow prune r.db --older-than 0s --status failed
check "prune says how old" fails 1 "older-than" workflow prune r.db
check "and in what unit" fails 1 "takes a span of time" workflow prune r.db --older-than 30
check "and which end" fails 1 "no instance ends" workflow prune r.db --older-than 1d --status running
check "prune" gives 0 '{"removed":1}' workflow prune r.db double --older-than 0s --json
check "what is open stays" holds says "^double/open " ls r.db

# ---- schedules

check "no queue has bounds" gives 0 "no queue has bounds" workflow queues r.db
check "a queue gets a bound" gives 0 "mail  at most 4 steps at once" workflow queues w.db put mail --most 4
check "it is paused, and keeps it" gives 0 "mail  at most 4 steps at once, paused" workflow queues w.db pause mail
check "as JSON" gives 0 '{"most":4,"name":"mail","paused":true}' workflow queues w.db --json
check "put leaves it paused" gives 0 "mail  at most 4 steps at once, paused" workflow queues w.db put mail --most 4
check "it goes on" gives 0 "mail  at most 4 steps at once" workflow queues w.db resume mail
check "pause takes no bound" fails 1 '"pause" has no --most' workflow queues w.db pause mail --most 9
check "ls takes no name" fails 1 '"mail" is one word too many' workflow queues w.db ls mail
check "a queue has a name" fails 4 "a queue has a name of letters" workflow queues w.db put "a b"
check "an unknown word of queues is refused" fails 1 "ls, put, pause" workflow queues w.db make mail
check "a queue without its name is refused" fails 1 "needs the name of a queue" workflow queues w.db pause
check "start --queue: for steps that name none" gives 0 "orphan/lined" workflow start w.db orphan --key lined --queue mail
check "the document has it" holds says '"queue":"mail"' show w.db orphan/lined --json
check "a queue that cannot be is refused" fails 4 "a queue has a name of letters" workflow start w.db orphan --queue "a b"
check "there are no schedules" gives 0 "there are no schedules" workflow schedule w.db
check "a schedule is stored, with its next times" holds says "^  when    30 2 \* \* \* Europe/Berlin; overlap skip, catch up last$" \
    schedule w.db put night steps --cron '30 2 * * *' --zone Europe/Berlin
check "wrong fields are told with their column" fails 4 "column 1: a minute is a number" workflow schedule w.db put bad steps --cron '61 * * * *'
check "an unknown workflow, too" fails 2 'no workflow "nosuch"' workflow schedule w.db put bad nosuch --every 3
every() { says "^  when    every $2; overlap skip, catch up last$" schedule w.db put often steps --every "$1"; }
check "an interval in minutes" holds every 15m "15 min"
check "in hours" holds every 1h "1 h"
check "in several units" holds every 1h30m "90 min"
check "in weeks" holds every 2w "14 d"
check "a number alone is seconds" holds every 0.5 "0.5 s"
check "an interval in an unknown unit is refused" fails 1 'every takes a span of time, not "1y"' workflow schedule w.db put bad steps --every 1y
check "and one without a number" fails 1 'every takes a span of time, not "h"' workflow schedule w.db put bad steps --every h
check "and a number that is not decimal" fails 1 'every takes a span of time, not "0x1d"' workflow schedule w.db put bad steps --every 0x1d
check "and one that is nothing" fails 1 'is less than a millisecond' workflow schedule w.db put bad steps --every 0.2ms
check "and one without end" fails 1 'is longer than 300 years' workflow schedule w.db put bad steps --every 99999999w
check "and units in a wrong order" fails 1 '90s, 15m, 1h30m, 1d' workflow schedule w.db put bad steps --every 5m1h
check "and one below zero" fails 1 'not "-3"' workflow schedule w.db put bad steps --every=-3
check "the interval is removed" gives 0 "often is removed" workflow schedule w.db rm often
check "a schedule needs times" fails 1 "when?" workflow schedule w.db put bad steps
check "or a word that there is" fails 4 "@hourly, @daily" workflow schedule w.db put bad steps --cron @reboot
check "ls --after the last says that there are no more" gives 0 "there are no more instances" workflow ls w.db --after zzz
check "of one sort" fails 1 "one is too many" workflow schedule w.db put bad steps --every 1h --cron '* * * * *'
check "rm takes one name" fails 1 '"other" is one word too many' workflow schedule w.db rm night other
check "ls takes none" fails 1 '"extra" is one word too many' workflow schedule w.db ls extra
check "pause takes no times" fails 1 '"pause" has no --every' workflow schedule w.db pause night --every 9s
check "pause" gives 0 "night is paused" workflow schedule w.db pause night
check "show --json" holds says '"paused":true' schedule w.db show night --json
check "trigger" gives 0 "night has one more time, now" workflow schedule w.db trigger night
check "ls" holds says "^night  starts steps, paused" schedule w.db ls
start_flow_shop w.db
triggered() { flow ls w.db steps --status done | grep -q "^steps/night@"; }
check "the program that runs workflows starts what was triggered" holds until_true triggered
kill "$pid"; wait "$pid" 2>/dev/null
check "rm" gives 0 "night is removed" workflow schedule w.db rm night
flow register q.db "$irs/nap.json" >/dev/null
flow schedule q.db put lazy nap --cron '30 2 1 1 *' --overlap queue >/dev/null
start_flow_shop q.db
flow schedule q.db trigger lazy >/dev/null
until_true says "running nap/lazy@" schedule q.db show lazy
flow schedule q.db trigger lazy >/dev/null
check "a time that waits is shown" holds until_true says "^  waits   the time " schedule q.db show lazy
kill "$pid"; wait "$pid" 2>/dev/null
check "and it is gone" fails 2 'no schedule "night"' workflow schedule w.db show night
check "an unknown word is refused" fails 1 "put, ls, show" workflow schedule w.db make night
