# interruption.sh -- Ctrl-C, SIGTERM and kill -9 in the middle of writing.

python3 -c 'for i in range(200000):
    print("{\"space\":\"m\",\"id\":\"d%06d\",\"value\":{\"i\":%d,\"text\":\"%s\"}}" % (i, i, "x" * 100))' >many.jsonl

# The documents that are there are a first part of the lines.
is_prefix() { "$heddle" db export "$1" >part.jsonl && n=$(wc -l <part.jsonl) && [ "$n" -gt 0 ] &&
    [ "$n" -lt 200000 ] && head -n "$n" many.jsonl | cmp - part.jsonl; }
interrupt() { # interrupt SIGNAL FILE EXPECTED_STATUS
    "$heddle" db import "$2" many.jsonl >out.$1 2>&1 &
    importer=$!
    until_true "$heddle" get "$2" m/d000999
    kill -"$1" $importer
    wait $importer
    [ $? = "$3" ]
}
check "Ctrl-C ends an import with status 130" holds interrupt INT int.db 130
check "a first part of the lines is there" holds is_prefix int.db
check "the file is in order" gives 0 "int.db: in order" db check int.db
check "SIGTERM ends it with status 143" holds interrupt TERM term.db 143
check "the file is in order" gives 0 "term.db: in order" db check term.db
check "kill -9 ends it" holds interrupt KILL kill.db 137
check "and leaves a first part" holds is_prefix kill.db
check "in order" gives 0 "kill.db: in order" db check kill.db
check "and to be written on" gives 0 "" set kill.db m/d000000 0

# A command that waits for its input ends on SIGTERM, and its status (143) says why.
mkfifo silent
ends() { # ends ARGUMENTS...
    "$heddle" "$@" <silent >out.wait 2>&1 &
    waiting=$!
    exec 8>silent
    until_true test -e "/proc/$waiting/fd/3"
    kill -TERM $waiting
    wait $waiting
    got=$?
    exec 8>&-
    [ "$got" = 143 ] || { echo "status $got"; cat out.wait; false; }
}
check "SIGTERM ends a set that waits for its value" holds ends set wait.db m/a -
check "and an import that waits for lines" holds ends db import wait.db
check "and a workflow that is read from a pipe" holds ends workflow register wait.db /dev/stdin
