# lib.sh -- what the checks are made of.
#
#     gives STATUS 'OUTPUT' ARGUMENTS...    heddle exits with STATUS and prints OUTPUT
#     fails STATUS 'PATTERN' ARGUMENTS...   it exits with STATUS, prints nothing on stdout, and
#                                           stderr matches PATTERN
#     holds COMMAND...                      a shell command or function succeeds
#     on_terminal PATTERN ARGUMENTS...      on a terminal heddle prints what matches PATTERN; left
#                                           out where there are no terminals
#
# Each stands after `check "sentence"`, which names the case; after `check_file` what a store on a server does not have.
# In what `gives` and `fails` compare, the address of a store on a server is the name of a file again.

number=0
status=0
sentence=

check() { sentence=$1; shift; "$@"; }
# What is about a file, or what stands beside one, is not checked on a server.
check_file() { on_server || check "$@"; }
on_server() { [ "${HD_STORE:-}" = postgres ]; }
spoken() { if on_server; then sed "s|'*$HD_POSTGRES&schema=$HD_E2E\([a-z]*\)'*|\1.db|g"; else cat; fi; }

report() { # report GOOD EXPLANATION
    number=$((number + 1))
    if [ "$1" = yes ]; then
        echo "ok $number - $sentence"
    else
        echo "not ok $number - $sentence"
        printf '%s\n' "$2" | sed 's/^/# /'
        status=1
    fi
}

gives() {
    want_status=$1 want=$2
    shift 2
    got=$("$heddle" "$@" 2>err)
    got_status=$?
    got=$(printf %s "$got" | spoken)
    if [ "$got_status" = "$want_status" ] && [ "$got" = "$want" ]; then report yes; else
        report no "heddle $*
status $got_status, expected $want_status
printed:  $got
expected: $want
$(cat err)"
    fi
}

fails() {
    want_status=$1 pattern=$2
    shift 2
    got=$("$heddle" "$@" 2>err)
    got_status=$?
    spoken <err >err.spoken && mv err.spoken err
    if [ "$got_status" = "$want_status" ] && [ -z "$got" ] && grep -q -- "$pattern" err; then
        report yes
    else
        report no "heddle $*
status $got_status, expected $want_status; stdout: $got
stderr (expected to match \"$pattern\"):
$(cat err)"
    fi
}

holds() {
    if "$@" >out 2>&1; then report yes; else
        report no "$* failed
$(tail -n 20 out)"
    fi
}

terminal() { # terminal ARGUMENTS...; what heddle prints on one
    TERM=xterm timeout 60 python3 -c '
import os, pty, sys
child, fd = pty.fork()
if not child:
    os.execv(sys.argv[1], sys.argv[1:])
try:
    while piece := os.read(fd, 4096):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush() # for a check that looks on
except OSError: # the child is gone
    pass' "$heddle" "$@"
}

on_terminal() {
    if python3 -c 'import os; os.openpty()' 2>/dev/null; then
        pattern=$1
        shift
        terminal "$@" >out 2>&1
        if grep -q -- "$pattern" out; then report yes; else report no "$(cat out)"; fi
    else
        sentence="$sentence # SKIP there are no terminals here"
        report yes
    fi
}

# Waits, up to a minute, until a command succeeds: the machine may be busy.
until_true() {
    for _ in $(seq 1200); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    return 1
}

lines_in() { [ "$(wc -l <"$1")" -ge "$2" ]; }
