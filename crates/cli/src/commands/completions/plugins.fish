
# Names of plugins, and of their options: asked of the program.
function __fish_netdyno_plugin_settings
    set -l words (commandline -opc)
    for from in (seq (count $words))
        if test "$words[$from]" = --plugin
            netdyno plugin info $words[(math $from + 1)] --words 2>/dev/null
        else if string match -q -- '--plugin=*' $words[$from]
            netdyno plugin info (string replace -- --plugin= '' $words[$from]) --words 2>/dev/null
        end
    end
end
complete -c netdyno -n "__fish_seen_subcommand_from send craft trial search" -l plugin -r -a "(netdyno plugin list --words 2>/dev/null)"
complete -c netdyno -n "__fish_seen_subcommand_from send craft trial search" -l set -x -a "(__fish_netdyno_plugin_settings)"
complete -c netdyno -n "__fish_seen_subcommand_from plugin; and __fish_seen_subcommand_from info" -a "(netdyno plugin list --words 2>/dev/null)"
# Interfaces: asked of the kernel.
for option in on on2 measure measure2 between device yes-disrupt
    complete -c netdyno -n "__fish_seen_subcommand_from send replay measure reflect bridge impair probe live trial search endpoint clone counters doctor" -l $option -x -a "(ls /sys/class/net 2>/dev/null)"
end
complete -c netdyno -n "__fish_seen_subcommand_from doctor" -f -a "(ls /sys/class/net 2>/dev/null)"
