# Names of plugins, and of their options: asked of the program.
_netdyno_plugins() {
    local -a names
    names=(${(f)"$(netdyno plugin list --words 2>/dev/null)"})
    _alternative 'plugins:plugin:compadd -a names' 'modules:module:_files -g "*.wasm"'
}

_netdyno_settings() {
    local name at
    local -a settings
    for ((at = 1; at < CURRENT; at++)); do
        case $words[at] in
            --plugin) name=$words[at+1] ;;
            --plugin=*) name=${words[at]#*=} ;;
        esac
    done
    [[ -n $name ]] || return 1
    settings=(${(f)"$(netdyno plugin info "$name" --words 2>/dev/null)"})
    compadd -S '' -a settings
}

# Interfaces: asked of the kernel.
_netdyno_interfaces() {
    local -a names
    names=(/sys/class/net/*(N:t))
    compadd -a names
}
