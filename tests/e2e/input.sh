# input.sh -- what is wrong, where, and what to do about it.

"$heddle" set shop.db main/stock '{"apples": 12, "list": [1, 2]}'

check "an unknown command names the nearest" fails 1 'mean "heddle watch"' wacth shop.db
check "also of a group" fails 1 'mean "heddle db check"' db chekc shop.db
check "a group alone lists its members" fails 1 "check, repair, stats" db
check "an unknown option names the nearest" fails 1 "mean --json" get shop.db main/stock --jsn
check "an option without its argument says so" fails 1 "needs its argument" ls shop.db main --kind
check "a number is a number" fails 1 "whole number" log shop.db main --limit ten
check "missing operands show how to write it" fails 1 "heddle get FILE CELL" get shop.db
check "a word too many is named" fails 1 "too many" db check shop.db shop.db

check "an argument may follow an equals sign" gives 0 "" ls shop.db main --kind=none
check "words after -- are no options" gives 0 "" set --text shop.db main/x -- --json
check "but values" gives 0 '"--json"' get shop.db main/x
"$heddle" rm shop.db main/x

check_file "a missing file says how to create it" fails 2 "To create it: heddle set none.db" \
    get none.db main/x
check_file "as a command that can be pasted" fails 2 "heddle set 'my file.db' main/first" get "my file.db" main/x
check "and is not created" holds test ! -e none.db
check "a missing space names the nearest" fails 2 "mean main" ls shop.db mian
check "a missing document names the nearest" fails 2 "mean main/stock" get shop.db main/stok
check "a missing key names the nearest" fails 2 "mean main/stock#/apples" \
    get shop.db main/stock#/aples
check "a missing element tells how many there are" fails 2 "0 to 1" get shop.db main/stock#/list/2
check "a way through a number says so" fails 2 "kind int" get shop.db main/stock#/apples/x
check "a malformed cell name says how to write one" fails 4 "space/id#/path" get shop.db stock
check "a document that the space has and the user has not" fails 2 "mean main/stock?" \
    get shop.db main@user/stock
check "a malformed scope is named" fails 4 "scope is space, user or session" get shop.db m@all/x

check "malformed JSON has line and column" fails 4 "line 1, column 9" set shop.db main/x '{"a": 1,}'
shows_caret() { [ "$(sed -n 2,3p err)" = '  {"a": 1,}
          ^' ]; }
check "and a mark below the place" holds shows_caret
two_lines() { printf '{"é": 1,\n "b": tru}' | "$heddle" set shop.db main/x - 2>err; test $? = 4 &&
    [ "$(sed -n 2,3p err)" = '   "b": tru}
        ^' ] || { cat err; false; }; }
check "also on a later line" holds two_lines
check "text without quotes says how to quote" fails 4 "Text needs quotes: '\"hello\"'" \
    set shop.db main/x hello
check "a slip makes no file" fails 4 "Text needs quotes" set fresh.db main/x hello
check "nor does a name that is none" fails 4 "is no cell" set fresh.db mainx 1
check "nothing is there" holds sh -c '! ls fresh.db* 2>/dev/null'
"$heddle" set list.db main/list '[1, 2]'
check "a word is not an index of an array" fails 4 "that is not an index" set list.db main/list#/x 3
check "an index beyond the array" fails 4 "an index up to its length" set list.db main/list#/9 3
check "a value that cannot be put there is refused" fails 4 "cannot be put" \
    set shop.db main/stock#/apples/x 1
check "nothing of it was stored" fails 2 "no document" get shop.db main/x
check "with --json an error is a line of JSON" fails 2 \
    '^{"command":"get","error":"NOT_FOUND","message":".*","hint":".*"}$' get --json shop.db main/zzzzzz

# Names longer than anything that a message has room for.
long=$(python3 -c 'print("x" * 600)')
check "a long name of a space that is not there" fails 2 "no space" get shop.db $long/a
"$heddle" set shop.db main/$long '{"there": 1}'
check "a place that is missing in a document with a long name" fails 2 'has no "nowhere"' \
    get shop.db main/$long#/nowhere
check "a long key that is missing" fails 2 'has no "xxx' get shop.db main/stock#/$long
"$heddle" set shop.db $long/a 1
check "the log of a space with a long name" holds "$heddle" log shop.db $long/a
check "and what it holds" gives 0 "$long/a" ls shop.db $long
check "or begins with something" gives 0 "$long/a" ls shop.db $long/a

# What others have put into a file, or what was typed, must not drive the terminal.
escape=$(printf '\033[31m')
"$heddle" set shop.db main/odd "{\"a\\u001b[31m\": {\"b\": 1}}" --kind "k$escape"
"$heddle" set shop.db "main/odd#/a$escape/b" 2
tame() { "$heddle" "$@" >out 2>&1; ! grep -q "$(printf '\033')" out && [ -s out ]; }
check "a kind does not colour the list" holds tame ls shop.db main --long
check "nor a path the log" holds tame log shop.db main/odd
check "nor a key a message" holds tame get shop.db main/odd#/a
check "nor a name" holds tame get "no$escape.db" main/a
check "nor a command" holds tame "x$escape"
check "nor a space" holds tame ls shop.db "x$escape"
check "text is printed as it is" gives 0 "x$escape" get --text shop.db main/text$("$heddle" set --text shop.db main/text "x$escape")
"$heddle" rm shop.db main/odd main/text

bad=$(printf '\377')
check "a space that is no text is named" fails 4 "malformed" get shop.db "$bad/a"
is_json() { timeout -k 1 20 "$heddle" "$@" 2>err; python3 -c 'import json; print(json.load(open("err", encoding="utf-8")))'; }
check "with --json an unknown option is told in JSON" holds is_json get shop.db --jsn --json
check "so is an unknown command" holds is_json gte shop.db --json
check "and what is no text" holds is_json get --json "$bad.db" main/a
check "behind -- it is a name" fails 1 "^heddle get: " get shop.db --zzz -- --json

check "a file needs a name" fails 1 "the file needs a name" set "" main/a 1
check "also where it is only read" fails 1 "the file needs a name" get "" main/a
check "a name that SQLite takes for none is refused" fails 1 "write ./:memory:" set :memory: main/a 1
mkfifo pipe
waits_not() { timeout -k 1 20 "$heddle" get pipe main/a 2>err; [ $? = 5 ] && grep -q "is no file" err; }
check "a pipe is no file" holds waits_not
check "nor is a device" fails 5 "is no file" set /dev/null main/a 1
