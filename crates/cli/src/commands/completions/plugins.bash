
# Names of plugins, and of their options: asked of the program. Interfaces: of the kernel.
_netdyno_or_plugins() {
    local line=${COMP_LINE:0:COMP_POINT} word before plugin= from kept found
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    ((${#words[@]} > 2)) || { _netdyno "$@"; return; }
    word=${words[-1]} before=${words[-2]}
    case $word in
        --plugin=* | --set=* | --on=* | --on2=* | --measure=* | --measure2=* | --device=* | --yes-disrupt=*) before=${word%%=*} word=${word#*=} ;;
    esac
    # Of a capture there is `info`, too.
    [[ $before != info || ${words[-3]-} == plugin ]] || before=
    case $before in
        --plugin | info) found=$(netdyno plugin list --words 2>/dev/null) ;;
        --on | --on2 | --measure | --measure2 | --between | --device | --yes-disrupt | doctor)
            [[ $word != -* ]] || { _netdyno "$@"; return; }
            found=$(ls /sys/class/net 2>/dev/null)
            ;;
        --set)
            for ((from = 0; from + 1 < ${#words[@]}; from++)); do
                case ${words[from]} in
                    --plugin) plugin=${words[from + 1]} ;;
                    --plugin=*) plugin=${words[from]#*=} ;;
                esac
            done
            [[ -n $plugin ]] || return 0
            found=$(netdyno plugin info "$plugin" --words 2>/dev/null)
            [[ $word == *=* ]] || found=$(grep '=$' <<<"$found")
            ;;
        *) _netdyno "$@"; return ;;
    esac
    # What is completed begins behind the last `=` where that parts words.
    kept=
    [[ $word == *=* && $COMP_WORDBREAKS == *=* ]] && kept=${word%=*}=
    mapfile -t COMPREPLY < <(compgen -W "$found" -- "$word" | grep -vx -- "$word")
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
    # Modules can be named by their files, too.
    [[ $before != --plugin && $before != info ]] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X '!*.wasm' -- "$word")
}
complete -F _netdyno_or_plugins -o bashdefault -o default netdyno
