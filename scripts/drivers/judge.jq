# What the cells of one guest come to: reads its lines (scripts/drivers/cells), and says of each cell whether it is right.
#
#   jq -R -n --arg kernel 6.1 --arg nic igb --arg column igb --slurpfile refusals refusals.json -f judge.jq < lines
#
# A cell is right when every frame that was asked for was sent, counted and received, or when it was refused in one
# sentence that refusals.json knows, which names the kernel's version or what the driver lacks.

# Somebody counted what left: the interface, or, where the result says who did, somebody else.
def counted: .counter == .sent or any(.confirmed_by[]?; . != "nobody");

# The rate was not reached, and so the status is 1, on any emulated machine.
def whole: (.rc == 0 or .rc == 1) and .sent == .frames and .received == .frames and .reasons == [] and counted;

# At top speed what counts is that nothing is missing unsaid: some arrived, and what did not is told as lost or refused.
def adds_up: (.rc == 0 or .rc == 1) and .received > 0 and .received <= .frames
    and (.received == .sent and .sent == .frames or any(.reasons[]; test("did not arrive|refused")));

# 300 frames of 124 bytes; where the NIC took the tag out, a warning says so.
def tagged: .bytes == 124 * .frames or any(.warnings[]; test("VLAN tag"));

def refusal($cell): (.said // "") as $said
    | .rc == 2 and ($said | rtrimstr("\n") | test("\n") | not)
    and any($refusals[0][]; . as $known | ($kernel | test("^(" + $known.kernel + ")$")) and ($nic | test("^(" + $known.nic + ")$"))
        and ($cell | test("^(" + $known.cell + ")$")) and ($said | test($known.said)));

# What stands in the table beside the count.
def how:
    if .engine == "afxdp" and ((.engine_reason // "") | test("zero-copy") and (test("copy mode") | not)) then "afxdp zero-copy"
    elif .cell | test("^meter") then .meter
    elif .engine then .engine else "" end;

def judged: . as $line
    # It is to know what these very cells found: live frames, and the meter's own program.
    | if .cell == "doctor" then {ok: ((.rc == 0 or .rc == 1) and (.states // {}) != {}
            and (.states["XDP live frames"] == "good") == ($kernel != "5.10") and .states["meter"] == "good"),
            text: ([.states // {} | to_entries[] | select(.value == "bad") | .key] | if . == [] then "nothing bad" else "bad: " + join(", ") end)}
      elif .bad then {ok: false, text: .bad}
      elif has("answered") then {ok: (.small != 1), text: (if .small != 1 then "\(.answered) of 5" else "nor do small ones come through" end)}
      elif .skip then {ok: true, text: "-", note: .skip}
      # Each session copied once, each answer the same, from whom it is to be; nothing of the agent is left.
      elif has("copied") then {ok: (.rc == 0 and .copied == 20 and .same == 20 and .own == .wanted_own and .left == 0),
            text: "\(.copied) of 20 copied, \(.same) answers the same\(if .wanted_own > 0 then ", \(.own) from their clients" else "" end)", note: .said}
      # The capture of what was measured has just that.
      elif has("captured") and whole then {ok: (.captured == .received), text: "\(.received), \(.captured) in the capture"}
      # Each frame once, by its number; kernels from 5.17 on also say why.
      elif has("dropped") then {ok: ((.rc == 0 or .rc == 1) and
            (if .cell == "drops" then .dropped > 200 and .dropped <= .arrived and .arrived - .dropped <= 5 and ($kernel == "5.10" or any(.causes[]; test("NO_SOCKET")))
             else .sent == .frames and .lost == 150 and .dropped == 150 and .not_seen == 0 end)),
            text: "\(.dropped) named of \(if .cell == "drops" then .frames else (.lost // 0) end) (\(.causes | join("; ")))", note: (.said // "")}
      elif has("told") then {ok: .told, text: (if .told then "told" else "not told" end), note: (.reasons // [] | join("; "))}
      elif has("others_waited_ms") then {ok: (whole and .others_waited_ms < 3000), text: "\(.received) of \(.frames), others waited at most \(.others_waited_ms) ms"}
      elif .cell == "vlan" and whole and (tagged | not) then {ok: false, text: "\(.bytes) bytes of \(124 * .frames), unsaid"}
      # Stamps come back; a few may not, where the register was taken.
      elif (.cell | test("^tx stamps")) and whole then {ok: ((.stamps // [0, 0])[0] > 0 and .stamps[0] * 10 >= .stamps[1] * 9),
            text: "\(.received) \(how), \((.stamps // [0])[0]) of \((.stamps // [0, 0])[1]) stamped"}
      elif whole then {ok: true, text: "\(.received) \(how)"}
      elif (.cell | test("^top speed")) and adds_up then {ok: true, text: "\(.received) of \(.frames) \(how)", note: (.reasons | join("; "))}
      # What the driver loses under the meter's program is told before it is counted.
      elif (.cell | test("meter xdp$")) and any(.warnings[]?; test("virtio_net, loses frames")) and any(.reasons[]?; test("did not arrive"))
      then {ok: true, text: "\(.received // 0) of \(.frames), told", note: (.warnings | map(select(test("virtio_net"))) | first)}
      elif refusal($line.cell) then {ok: true, text: "refused", note: (.said | rtrimstr("\n"))}
      elif .sent == null then {ok: false, text: "failed", note: (.said // "")}
      else {ok: false, text: "\(.received // 0) of \(.frames) \(how)\(if counted then "" else ", \(.counter) counted" end)"} end;

# What the emulated NIC carries for nobody, the kernel's own ping not either, is no defect of netdyno's; it must be told.
def carried_by_none($all): . as $line | (.cell | capture("^(?<size>\\d+ B)( |,|$)")? // null) as $of
    | if $of and (.ok | not) and .received == 0 and .sent > 0 and any(.reasons[]; test("did not arrive"))
        and any($all[]; .cell == $of.size + " by ping" and .answered == 0 and .small == 0)
      then . + {ok: true, text: (.text + ", as by ping")} else . end;

[inputs | select(startswith("{")) | (fromjson? // {cell: "the guest", bad: ("a line that is no JSON: " + .[:100])})]
| (if any(.[]; .cell == "end") then . else . + [{cell: "the guest", bad: "it did not come to its end"}] end)
| . as $all | [.[] | select(.cell != "end") | {cell, kernel: $kernel, nic: $column, sent, received, engine: how,
    warnings: (.warnings // []), reasons: (.reasons // [])} + judged | carried_by_none($all)]
