//! Servers of endpoint tests do not grow with their tests: some dozens here, thousands by hand (`scripts/soak-endpoint`).

use crate::common::{Net, start};
use std::path::Path;

#[test]
fn servers_of_all_three_protocols_do_not_grow_with_their_tests() {
    let net = Net::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/soak-endpoint");
    let mut command = net.command(format!("{} 40", script.display()));
    command.env("NETDYNO", env!("CARGO_BIN_EXE_netdyno"));
    net.run("ip link set lo up").ok();
    let ran = start(command).wait().ok();
    assert!(ran.stdout.contains("soak-endpoint: 40 tests, and nothing grew"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout.matches("native").count(), ran.stdout.matches("iperf3").count(), "{}", ran.stdout);
}
