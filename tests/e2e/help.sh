# help.sh -- every command explains itself; colours only where they are wanted.

names() { "$heddle" help | sed -n 's/^  \(db [a-z]*\|events [a-z]*\|workflow [a-z]*\|[a-z-]*\)   *[a-z].*/\1/p' | grep -v '^heddle'; }
explains() { # the same by help and by --help, in 80 columns, with an example of itself
    names >names; [ "$(wc -l <names)" -ge 18 ] || return 1
    while read -r name; do
        "$heddle" help $name >a && "$heddle" $name --help >b && cmp a b &&
            ! grep -E '.{81}' a && grep -q "^  heddle $name" a &&
            head -n 1 a | grep -q "^heddle $name" || { echo "help $name"; cat a; return 1; }
    done <names
}
check "every command has help and an example, in 80 columns" holds explains
check "the overview fits too" holds sh -c '"$0" help >o && ! grep -E ".{81}" o' "$heddle"
check "no words show the overview" holds sh -c '"$0" >p && "$0" help | cmp - p' "$heddle"
for words in "db --help" "db -h" "db help"; do
    check "heddle $words tells about the group" holds sh -c '"$0" help db >p && "$0" $1 | cmp - p' "$heddle" "$words"
done
check "exit codes are documented" holds sh -c '"$0" help exit-codes | grep -q "^  3  "' "$heddle"
check "a misspelt group names the nearest command" fails 1 'Did you mean "heddle workflow ls"' worklow ls shop.db
check "a misspelt topic names the nearest" fails 1 "help cells" help clels
pages() {
    while read -r name; do
        "$heddle" help --man $name >page && grep -q '^\.TH "HEDDLE-' page || return 1
        command -v groff >/dev/null || continue
        groff -man -ww -Tutf8 page 2>warnings >/dev/null && [ ! -s warnings ] || { cat warnings; return 1; }
    done <names
    "$heddle" help --man | grep -q '^\.SH EXIT STATUS'
}
check "every command has a manual page, which roff accepts" holds pages
written() { mkdir pages && "$heddle" help --man-pages pages &&
    [ "$(ls pages | wc -l)" = $(($(wc -l <names) + 1)) ] && "$heddle" help --man db check | cmp - pages/heddle-db-check.1; }
check "all pages can be written to a directory" holds written
check "version" gives 0 '{"version":"'"$("$heddle" --version | cut -d' ' -f2)"'"}' version --json
check "doctor looks at the place" holds sh -c '"$0" doctor shop.db --json | grep -q "\"writable\":true"' "$heddle"

escape=$(printf '\033')
check "no colours in a pipe" holds sh -c '! "$0" help | grep "$1"' "$heddle" "$escape"
check "colours with --color always" holds sh -c '"$0" help --color always | grep -q "$1"' "$heddle" "$escape"
check "colours on a terminal" on_terminal "$escape" help
check "not with NO_COLOR" holds sh -c '! grep "$1" "$0"' "$(NO_COLOR=1 terminal help >plain 2>&1; echo plain)" "$escape"
documented() { "$heddle" help exit-codes | sed -n 's/^  \([0-9][0-9]*\)  *\(.*\)/| \1 | \2 |/p' >codes &&
    [ "$(wc -l <codes)" = 11 ] && while read -r row; do grep -qxF "$row" "$here/../../docs/CLI.md" ||
        { echo "docs/CLI.md lacks: $row"; return 1; }; done <codes; }
check "docs/CLI.md has the same exit codes" holds documented
