# several.sh -- several processes on one file.

"$heddle" set shop.db main/n 0 main/list '[]'
add='[{"op":"increment","path":"","value":1}]'
adder() { for _ in $(seq 15); do "$heddle" patch shop.db main/n "$add" || echo "failed" >>bad; done; }
adder & adder & adder &
backups() { for i in $(seq 4); do "$heddle" db backup shop.db "copy$i.db" >/dev/null &&
    "$heddle" db check "copy$i.db" >/dev/null || return 1; done; }
check_file "backups made meanwhile are in order" holds backups
wait
check "no writer fails" holds test ! -e bad
check "no increment is lost" gives 0 45 get shop.db main/n
winners() { # of several that want to be the first, one is
    for i in 1 2 3 4; do "$heddle" set --new shop.db main/first $i 2>/dev/null && echo won >>won & done
    wait; lines_in won 1 && ! lines_in won 2; }
check "one of several --new wins" holds winners
check "the file is in order" gives 0 "shop.db: in order" db check shop.db
