//! What the words of edits mean: the plan they ask for.

use ::edit::rewrite::{self, FixLength, Fuzz, MacScramble, PerSide, Plan, PortMap, Vlan, random};
use anyhow::{Context, Result, bail};
use spec::Edits;

/// The plan that the words of `edit` ask for. `sided`: it is known which side sent each frame.
///
/// # Errors
/// Which setting cannot be read, or contradicts another.
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
    plan.source_mac = mac("`.src_mac`", args.src_mac.as_deref(), !sided)?;
    plan.destination_mac = mac("`.dst_mac`", args.dst_mac.as_deref(), !sided)?;
    plan.replace_mac = replacements("`.replace_mac`", &args.replace_mac)?;
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
        plan.map_client = map("`.map_ip`", &args.map_ip.join(","))?;
        plan.map_server = plan.map_client.clone();
    }
    if args.endpoints.is_some() && !sided {
        bail!("`.endpoints`: say with `.sides` which frames are the client's");
    }
    sided_maps(
        &mut plan,
        [("`.map_src_ip`", args.map_src_ip.as_deref()), ("`.map_dst_ip`", args.map_dst_ip.as_deref())],
        ("`.endpoints`", args.endpoints.as_deref()),
    )?;
    plan.ports = ports("`.map_port`", &args.map_port)?;
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

/// Of the same seed the same addresses. `keep` bytes stay as they are.
pub fn scramble_mac(seed: Option<u32>, keep: Option<u8>) -> Option<MacScramble> {
    seed.map(|seed| MacScramble::new(seed, keep.unwrap_or(0).into()))
}

/// One in eight frames unless told otherwise. Seed 0 fuzzes nothing, as in tcprewrite.
pub fn fuzz(seed: Option<u32>, factor: Option<u32>) -> Option<Fuzz> {
    seed.filter(|seed| *seed != 0).map(|seed| Fuzz::new(seed, factor.unwrap_or(8)))
}

/// An address, or one for each side; `name` is what it is called, for messages.
///
/// # Errors
/// That it is no address, or two where one can be.
pub fn mac(name: &str, text: Option<&str>, one: bool) -> Result<PerSide<wire::Mac>> {
    let Some(text) = text else { return Ok(PerSide::default()) };
    let pair = rewrite::mac_pair(text).with_context(|| name.to_owned())?;
    if one && pair.server.is_some() {
        bail!("{name}: the second address is the server's; say with `.sides` which frames are");
    }
    Ok(pair)
}

/// Addresses that others take the place of.
///
/// # Errors
/// Which of them is no pair of addresses.
pub fn replacements(name: &str, texts: &[String]) -> Result<Vec<(wire::Mac, wire::Mac)>> {
    let mut all = Vec::new();
    for text in texts {
        all.extend(rewrite::mac_replacements(text).with_context(|| name.to_owned())?);
    }
    Ok(all)
}

/// Networks that others take the place of.
///
/// # Errors
/// What of the text is no network, and where.
pub fn map(name: &str, text: &str) -> Result<rewrite::AddressMap> {
    rewrite::address_map(text).with_context(|| name.to_owned())
}

/// Ports that others take the place of.
///
/// # Errors
/// Which of them is no pair of ports.
pub fn ports(name: &str, texts: &[String]) -> Result<PortMap> {
    let mut ports = PortMap::default();
    for text in texts {
        rewrite::port_map(text, &mut ports).with_context(|| name.to_owned())?;
    }
    Ok(ports)
}

/// Set, raised or lowered.
///
/// # Errors
/// That it is no number from 0 to 255.
pub fn ttl(text: Option<&str>) -> Result<Option<rewrite::Ttl>> {
    text.map(rewrite::ttl).transpose().context("`.ttl`")
}

/// Networks of the source, of the destination, and the two endpoints.
///
/// # Errors
/// What of the texts is no network, and where.
pub fn sided_maps(
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
