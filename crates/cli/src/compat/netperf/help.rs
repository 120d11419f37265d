//! `netdyno netperf -h`.

/// The options that are there.
pub const HELP: &str = "\
Measures streams and transactions between two hosts with netperf's options, against any netserver of 2.6 or later.

Usage: netdyno netperf [global options] -- [test options]

Global options:
    -H host[,family]    The server (localhost), 4 or 6
    -p port[,own]       The port of its control connection (12865), and an own one
    -L host[,family]    Own address
    -4, -6              IPv4, IPv6
    -t test             TCP_STREAM, TCP_MAERTS, TCP_SENDFILE, TCP_RR, TCP_CRR, TCP_CC, UDP_STREAM, UDP_RR, OMNI
    -l length           Seconds (10; 0: a day), or if negative bytes or transactions
    -c, -C              CPU use of this host, of the server; service demand
    -i max,min          Repeat the test so many times (3 to 30)
    -I level[,width]    Until the mean is known to 95 or 99 % within this width in %
    -r                  ... the result's alone, not CPU use's
    -j                  Time each transaction: latency percentiles
    -D seconds          Interim results
    -f G|M|K|g|m|k|x    Unit of results
    -P 0|1              Headers
    -v 0|1|2            One number, a table, more
    -B text             A mark beside results without headers
    -T own,theirs       Processors to run on
    -y own,theirs       SO_PRIORITY
    -Y own,theirs       IP_TOS: a number, or a DSCP such as CS1 or AF41
    -F file             Fill buffers from it
    -s seconds          Wait before data
    -S                  SO_KEEPALIVE
    -Z passphrase       Said to the server first, in clear
    -a, -A, -o, -O, -W  Alignment, offset and number of buffers (the server's only)
    -V                  Version

Test options:
    -m own[,theirs]     Bytes of each send
    -M theirs[,own]     Bytes of each receive
    -s send,recv        Own socket buffers
    -S send,recv        The server's
    -r request,response Bytes of both
    -b n                Requests in flight beside the first
    -D                  TCP_NODELAY on both sides
    -C                  TCP_CORK
    -K own,theirs       Congestion control
    -q rate             SO_MAX_PACING_RATE, bytes a second
    -G mss              TCP_MAXSEG
    -H, -L host[,fam]   Other addresses for data
    -P own,theirs       Ports for data
    -p min,max          Own ports for connections (TCP_CRR, TCP_CC)
    -R 0|1              UDP: cross routers (UDP_STREAM does not by itself)
    -e seconds          UDP_RR: a datagram without an answer is lost
    -f                  Do not fragment
    -F, -a              TCP Fast Open, TCP_DEFER_ACCEPT
    -V                  Do not touch data received (splice)
    -k, -o, -O [list]   Print selected values as NAME=value, CSV, columns; `?` lists their names, `all` takes all
    -d send|recv|rr, -t stream|dgram, -T tcp|udp, -c    What an OMNI test is made of
    -u uuid             The result's name

Pairs: `x` sets both, `x,` the first, `,x` the second. Sizes: k, m, g are of 10, K, M, G of 2.
docs/from-netperf.md says what differs from netperf.
";

/// `netdyno netserver -h`.
pub const SERVER: &str = "\
Serves netperf's tests to any netperf of 2.6 or later, to several clients at once.

Usage: netdyno netserver [options]

    -p port             Listen on this port (12865)
    -L host[,family]    Listen on this address alone
    -4, -6              IPv4, IPv6 alone
    -f                  One client after the other
    -Z passphrase       What clients have to say (netperf -Z)
    -v level            1: say what is served; 0 (default): errors only
    -D                  Stay in the foreground, as it always does
    -d, -N              Accepted, and do nothing
    -V                  Version
";
