# lib.sh -- what the checks are made of.
#
#     gives STATUS 'OUTPUT' ARGUMENTS...    heddle exits with STATUS and prints OUTPUT
#     fails STATUS 'PATTERN' ARGUMENTS...   it exits with STATUS, prints nothing on stdout, and
#                                           stderr matches PATTERN
#     holds COMMAND...                      a shell command or function succeeds
#
# Each stands after `check "sentence"`, which names the case.

number=0
status=0
sentence=

check() { sentence=$1; shift; "$@"; }

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

# Waits, up to ten seconds, until a command succeeds.
until_true() {
    for _ in $(seq 200); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    return 1
}

lines_in() { [ "$(wc -l <"$1")" -ge "$2" ]; }
