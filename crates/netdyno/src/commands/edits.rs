//! What the words of edits mean: the plan they ask for, of netdyno's own options and of tcprewrite's.

use crate::cli::edit::{FixLengthChoice, LinkChoice, TcprewriteEdits, VlanMode};
use ::edit::rewrite::{self, FixLength, Fuzz, MacScramble, NewHeader, PerSide, Plan, PortMap, Vlan, random};
use anyhow::{Context, Result, bail};
use spec::Edits;
use wire::LinkType;

/// The plan that the words of `edit` ask for. `sided`: it is known which side sent each frame.
pub fn plan(args: &Edits, sided: bool) -> Result<Plan> {
    check(args)?;
    let mut plan = Plan {
        strip_fcs: args.strip_fcs,
        skip_l2_broadcast: args.keep_group_macs,
        scramble_mac: scramble_mac(args.scramble_mac, args.keep_mac_bytes),
        tos: args.tos,
        traffic_class: args.traffic_class,
        flow_label: args.flow_label,
        tcp_shift: args.tcp_shift,
        fuzz: fuzz(args.fuzz_seed, args.fuzz_factor).map(Fuzz::whole_payloads),
        fix_length: args.fix_length.map(|how| match how {
            spec::FixLength::Pad => FixLength::Pad,
            spec::FixLength::Truncate => FixLength::Truncate,
            spec::FixLength::Delete => FixLength::Delete,
        }),
        cut_to_mtu: args.cut_to_mtu,
        skip_broadcast: args.keep_group_ips,
        scramble_ip: args.scramble_ip.map(random::ip_seed),
        fix_header_length: args.fix_header_length,
        fix_checksums: args.fix_checksums,
        drop_unsupported: args.drop_unsupported,
        ..Plan::default()
    };
    plan.source_mac = mac("--src-mac", args.src_mac.as_deref(), !sided)?;
    plan.destination_mac = mac("--dst-mac", args.dst_mac.as_deref(), !sided)?;
    plan.replace_mac = replacements("--replace-mac", &args.replace_mac)?;
    plan.vlan = match (args.vlan_add, args.vlan_del) {
        (Some(id), _) => Some(Vlan::Add {
            id,
            priority: args.vlan_priority,
            cfi: args.vlan_dei.map(|dei| dei == 1),
            ether_type: args.vlan_kind.unwrap_or_default().ether_type(),
        }),
        (None, true) => Some(Vlan::Delete),
        (None, false) => None,
    };
    if !args.map_ip.is_empty() {
        // Several options are one list.
        plan.map_client = map("--map-ip", &args.map_ip.join(","))?;
        plan.map_server = plan.map_client.clone();
    }
    if args.endpoints.is_some() && !sided {
        bail!("--endpoints: say with --sides which frames are the client's");
    }
    sided_maps(
        &mut plan,
        [("--map-src-ip", args.map_src_ip.as_deref()), ("--map-dst-ip", args.map_dst_ip.as_deref())],
        ("--endpoints", args.endpoints.as_deref()),
    )?;
    plan.ports = ports("--map-port", &args.map_port)?;
    plan.ttl = ttl(args.ttl.as_deref())?;
    Ok(plan)
}

/// What is out of range or contradicts itself. (Of what is typed clap says so.)
fn check(args: &Edits) -> Result<()> {
    let ranges = [
        ("keep_mac_bytes", args.keep_mac_bytes.map(u32::from), 1, 6),
        ("vlan_add", args.vlan_add.map(u32::from), 0, 4095),
        ("vlan_priority", args.vlan_priority.map(u32::from), 0, 7),
        ("vlan_dei", args.vlan_dei.map(u32::from), 0, 1),
        ("flow_label", args.flow_label, 0, 0xf_ffff),
        ("fuzz_seed", args.fuzz_seed, 1, u32::MAX),
        ("fuzz_factor", args.fuzz_factor, 1, u32::MAX),
        ("cut_to_mtu", args.cut_to_mtu, 1, 262_144),
    ];
    for (name, value, least, most) in ranges {
        if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
            bail!("edits.{name}: {value} is not possible: give {least} to {most}");
        }
    }
    let macs = args.src_mac.is_some() || args.dst_mac.is_some() || !args.replace_mac.is_empty();
    let contradicted = [
        ("scramble_mac", args.scramble_mac.is_some() && macs),
        ("vlan_del", args.vlan_del && args.vlan_add.is_some()),
        ("map_ip", !args.map_ip.is_empty() && (args.map_src_ip.is_some() || args.map_dst_ip.is_some())),
        ("endpoints", args.endpoints.is_some() && !args.map_ip.is_empty()),
        ("cut_to_mtu", args.cut_to_mtu.is_some() && args.fix_length.is_some()),
    ];
    match contradicted.into_iter().find(|(_, contradicted)| *contradicted) {
        Some((name, _)) => bail!("edits.{name}: another edit says something else of the same: keep one"),
        None => Ok(()),
    }
}

/// What `--link` asks for: the link type, and the header in the plan.
pub fn link(choice: LinkChoice, plan: &mut Plan) -> LinkType {
    let (header, link) = match choice {
        LinkChoice::Ethernet => return LinkType::ETHERNET,
        LinkChoice::Hdlc => (NewHeader::Hdlc { address: 0x0f, control: 0 }, LinkType::C_HDLC),
        LinkChoice::Ppp => (NewHeader::PppSerial, LinkType::PPP_SERIAL),
        LinkChoice::Juniper => (NewHeader::JuniperEthernet, LinkType::JUNIPER_ETHERNET),
        LinkChoice::Raw => (NewHeader::Raw, LinkType::RAW),
    };
    plan.header = Some(header);
    link
}

/// What `--dlt` and its companions ask for: the link type, and the header in the plan.
pub fn new_link(args: &TcprewriteEdits, plan: &mut Plan) -> Result<Option<LinkType>> {
    let bytes = |text: &String| rewrite::hex_bytes(text).context("--user-dlink");
    match args.dlt.as_deref() {
        None => Ok(None),
        Some("enet") => Ok(Some(LinkType::ETHERNET)),
        Some("hdlc") => {
            plan.header = Some(NewHeader::Hdlc {
                address: args.hdlc_address.context("--dlt=hdlc needs --hdlc-address")?,
                control: args.hdlc_control.context("--dlt=hdlc needs --hdlc-control")?,
            });
            Ok(Some(LinkType::C_HDLC))
        }
        Some("user") => {
            let (server, client) = match args.user_dlink.as_slice() {
                [both] => (bytes(both)?, bytes(both)?),
                [server, client] => (bytes(server)?, bytes(client)?),
                _ => bail!("--dlt=user needs --user-dlink, once or twice"),
            };
            if server.len() != client.len() {
                bail!("--user-dlink: both headers must have the same length");
            }
            plan.header = Some(NewHeader::Bytes { client, server });
            Ok(args.user_dlt.map(LinkType))
        }
        Some(other) => {
            let (header, link) = match other {
                "pppserial" => (NewHeader::PppSerial, LinkType::PPP_SERIAL),
                "raw" => (NewHeader::Raw, LinkType::RAW),
                "jnpr_eth" => (NewHeader::JuniperEthernet, LinkType::JUNIPER_ETHERNET),
                _ => bail!(
                    "--dlt={other} is not known: there are enet, hdlc, jnpr_eth, pppserial, raw and user"
                ),
            };
            plan.header = Some(header);
            // Nothing may be in their files that cannot have their headers.
            plan.keep_foreign = false;
            Ok(Some(link))
        }
    }
}

/// The plan that tcprewrite's options ask for.
pub fn tcprewrite_plan(args: &TcprewriteEdits, sided: bool) -> Result<Plan> {
    let mut plan = Plan {
        strip_fcs: args.efcs,
        skip_l2_broadcast: args.skipl2broadcast,
        scramble_mac: scramble_mac(args.enet_mac_seed, args.enet_mac_seed_keep_bytes),
        tos: args.tos,
        traffic_class: args.tclass,
        flow_label: args.flowlabel,
        tcp_shift: args.tcp_sequence.map(random::tcp_shift),
        fuzz: fuzz(args.fuzz_seed, args.fuzz_factor),
        fix_length: args.fixlen.map(fix_length),
        cut_to_mtu: args.mtu_trunc.then_some(args.mtu),
        skip_broadcast: args.skipbroadcast,
        scramble_ip: args.seed.map(random::ip_seed),
        fix_header_length: args.fixhdrlen,
        fix_checksums: args.fixcsum,
        drop_unsupported: args.skip_soft_errors,
        always_group_mac: true,
        keep_foreign: true,
        ..Plan::default()
    };
    plan.source_mac = mac("--enet-smac", args.enet_smac.as_deref(), false)?;
    plan.destination_mac = mac("--enet-dmac", args.enet_dmac.as_deref(), false)?;
    plan.replace_mac = replacements("--enet-subsmac", &args.enet_subsmac)?;
    plan.vlan = match args.enet_vlan {
        Some(VlanMode::Add) => Some(Vlan::Add {
            id: args.enet_vlan_tag.context("--enet-vlan=add needs --enet-vlan-tag")?,
            priority: args.enet_vlan_pri,
            cfi: args.enet_vlan_cfi.map(|cfi| cfi == 1),
            ether_type: args.enet_vlan_proto.ether_type(),
        }),
        Some(VlanMode::Del) => Some(Vlan::Delete),
        None => None,
    };
    match args.pnat.as_slice() {
        [] => {}
        [both] => {
            plan.map_client = map("--pnat", both)?;
            plan.map_server = plan.map_client.clone();
        }
        [client, server] => {
            plan.map_client = map("--pnat", client)?;
            plan.map_server = map("--pnat", server)?;
        }
        _ => bail!("--pnat may be given at most twice; one of them can have several pairs, with commas"),
    }
    if args.endpoints.is_some() && !sided {
        bail!("--endpoints needs --cachefile, which says which packets are the client's");
    }
    sided_maps(
        &mut plan,
        [("--srcipmap", args.srcipmap.as_deref()), ("--dstipmap", args.dstipmap.as_deref())],
        ("--endpoints", args.endpoints.as_deref()),
    )?;
    plan.ports = ports("--portmap", &args.portmap)?;
    plan.ttl = ttl(args.ttl.as_deref())?;
    Ok(plan)
}

fn scramble_mac(seed: Option<u32>, keep: Option<u8>) -> Option<MacScramble> {
    seed.map(|seed| MacScramble::new(seed, keep.unwrap_or(0).into()))
}

/// One in eight frames unless told otherwise. Seed 0 fuzzes nothing, as in tcprewrite.
fn fuzz(seed: Option<u32>, factor: Option<u32>) -> Option<Fuzz> {
    seed.filter(|seed| *seed != 0).map(|seed| Fuzz::new(seed, factor.unwrap_or(8)))
}

fn fix_length(choice: FixLengthChoice) -> FixLength {
    match choice {
        FixLengthChoice::Pad => FixLength::Pad,
        FixLengthChoice::Truncate => FixLength::Truncate,
        FixLengthChoice::Delete => FixLength::Delete,
    }
}

fn mac(name: &str, text: Option<&str>, one: bool) -> Result<PerSide<wire::Mac>> {
    let Some(text) = text else { return Ok(PerSide::default()) };
    let pair = rewrite::mac_pair(text).with_context(|| name.to_owned())?;
    if one && pair.server.is_some() {
        bail!("{name}: the second address is the server's; say with --sides which frames are");
    }
    Ok(pair)
}

fn replacements(name: &str, texts: &[String]) -> Result<Vec<(wire::Mac, wire::Mac)>> {
    let mut all = Vec::new();
    for text in texts {
        all.extend(rewrite::mac_replacements(text).with_context(|| name.to_owned())?);
    }
    Ok(all)
}

fn map(name: &str, text: &str) -> Result<rewrite::AddressMap> {
    rewrite::address_map(text).with_context(|| name.to_owned())
}

fn ports(name: &str, texts: &[String]) -> Result<PortMap> {
    let mut ports = PortMap::default();
    for text in texts {
        rewrite::port_map(text, &mut ports).with_context(|| name.to_owned())?;
    }
    Ok(ports)
}

fn ttl(text: Option<&str>) -> Result<Option<rewrite::Ttl>> {
    text.map(rewrite::ttl).transpose().context("--ttl")
}

fn sided_maps(
    plan: &mut Plan,
    one_way: [(&str, Option<&str>); 2],
    endpoints: (&str, Option<&str>),
) -> Result<()> {
    let [source, destination] = one_way;
    if let (name, Some(text)) = source {
        plan.map_source = map(name, text)?;
    }
    if let (name, Some(text)) = destination {
        plan.map_destination = map(name, text)?;
    }
    if let (name, Some(text)) = endpoints {
        (plan.map_client, plan.map_server) = rewrite::endpoints(text).with_context(|| name.to_owned())?;
    }
    Ok(())
}
