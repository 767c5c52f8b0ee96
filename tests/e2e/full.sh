# full.sh -- a disk without room: said so, nothing half done, and everything as before when there is room.

# Runs a script with a small disk at ./disk.
small_disk() { # small_disk KILOBYTES SCRIPT ARGUMENTS...
    mkdir -p disk
    size=$1
    shift
    $unshare sh -c 'mount -t tmpfs -o size="$0"k none disk && exec sh -c "$@"' "$size" "$@"
}
unshare=
for way in "unshare -m" "unshare -rm"; do
    [ -z "$unshare" ] && $way sh -c 'mkdir -p disk && mount -t tmpfs none disk' 2>/dev/null && unshare=$way
done
can() {
    [ -n "$unshare" ] && return
    sentence="$sentence # SKIP no disk can be mounted here"
    report yes
    false
}
on_disk() { can && holds small_disk "$@"; }

says='"$0" "$@" 2>err; [ $? = 6 ] && grep -q "the disk is full" err || { cat err; exit 1; }'
for size in 4 8 16 28 40 80 120 132; do
    check "a new file, $size KB: the disk is full" on_disk $size "$says"' && [ -z "$(ls disk)" ]' \
        "$heddle" set disk/a.db main/a 1
done
check "an empty file" on_disk 4 ': >disk/a.db; '"$says" "$heddle" set disk/a.db main/a 1
check "a disk with no room for another name" on_disk 400,nr_inodes=2 ': >disk/x; '"$says" "$heddle" set disk/a.db main/a 1
check "an event" on_disk 120 "$says" "$heddle" send disk/a.db main/s 1
check "with room it is made" on_disk 400 '"$0" set disk/a.db main/a 1 && "$0" db check disk/a.db' "$heddle"

python3 -c 'for i in range(200): print("{\"space\":\"m\",\"id\":\"d%d\",\"value\":\"%s\"}" % (i, "x" * 1000))' >lines
# A reader, too, needs room: for the file that SQLite has beside the store.
fill='"$0" db import disk/a.db lines >out && "$0" db export disk/a.db >before &&
    head -c 10000000 /dev/zero >disk/filler 2>/dev/null; truncate -s -65536 disk/filler; '
keeps=' "$0" db check disk/a.db >out && "$0" db export disk/a.db | cmp - before'
check "db vacuum" on_disk 1700 \
    "$fill"' "$0" db vacuum disk/a.db 2>err; [ $? = 6 ] && grep -q "vacuum: no space left" err &&
    grep -q "Make room first" err || { cat err; exit 1; };'"$keeps"' && rm disk/filler && "$0" db vacuum disk/a.db' \
    "$heddle"
check "db prune, whether there is room enough or not" on_disk 1700 "$fill"' "$0" db prune disk/a.db;'"$keeps" "$heddle"
check "a backup" on_disk 1700 \
    "$fill"' "$0" db backup disk/a.db disk/b.db 2>err; [ $? = 6 ] && grep -q "disk is full" err &&
    [ ! -e disk/b.db ] && [ ! -e disk/b.db.partial ] &&'"$keeps" "$heddle"
check "a write is refused" on_disk 1700 "$fill"'
    python3 -c "print(chr(34) + chr(120) * 100000 + chr(34))" | "$0" set disk/a.db m/more - 2>err
    [ $? = 6 ] && grep -q "Nothing was stored" err && '"$keeps" "$heddle"
check "everything is read" on_disk 1700 "$fill$keeps" "$heddle"
limited() { (ulimit -f 1 && "$heddle" set limited.db main/a 1) 2>err; 
    [ $? = 6 ] && [ -z "$(ls limited.db* 2>/dev/null)" ] && grep -q "disk I/O error" err || { cat err; ls; false; }; }
check "a limit of the shell on files is an error, and no crash" holds limited
