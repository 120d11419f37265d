//! `netdyno edit` and `netdyno tcprewrite`: a capture in, an edited one out.

use crate::cli::edit::{Edit, FixLengthChoice, Tcprewrite, VlanMode};
use crate::output::note;
use ::edit::cache::{Cache, Way};
use ::edit::rewrite::{
    self, EditError, FixLength, MacScramble, NewHeader, PerSide, Plan, PortMap, Side, Target, Totals, Vlan,
    random,
};
use anyhow::{Context, Result, bail};
use capture::{FileFormat, Reader};
use report::units;
use std::path::Path;
use wire::LinkType;

pub fn run(args: Edit) -> Result<u8> {
    let plan = plan(&args)?;
    let format = FileFormat::of_name(&args.write);
    let link = args.to_ethernet.then_some(LinkType::ETHERNET);
    let target = Target { path: &args.write, format, link, snaplen: None };
    let mut input = Reader::open(&args.input)?;
    if args.skip_corrupt {
        input = input.lenient();
    }
    let totals = pass(&args.input, input, target, &plan, args.sides.as_deref())?;
    note(&summary(&totals, &args.write, plan.drop_unsupported));
    Ok(0)
}

fn summary(totals: &Totals, path: &Path, dropped: bool) -> String {
    let mut text = format!("wrote {} of {}", path.display(), units::counted(totals.written, "frame"));
    if totals.unsupported > 0 && !dropped {
        text += &format!(", {} of them unedited: their headers cannot be read", totals.unsupported);
    }
    let left = totals.read - totals.written;
    if left > 0 {
        text += &format!("; {} left out", units::counted(left, "frame"));
    }
    text
}

/// The plan that the words of `edit` ask for.
fn plan(args: &Edit) -> Result<Plan> {
    let mut plan = Plan {
        strip_fcs: args.strip_fcs,
        skip_l2_broadcast: args.keep_group_macs,
        scramble_mac: scramble_mac(args.scramble_mac, args.keep_mac_bytes),
        tos: args.tos,
        traffic_class: args.traffic_class,
        flow_label: args.flow_label,
        tcp_shift: args.tcp_shift,
        fix_length: args.fix_length.map(fix_length),
        cut_to_mtu: args.cut_to_mtu,
        skip_broadcast: args.keep_group_ips,
        scramble_ip: args.scramble_ip.map(random::ip_seed),
        fix_header_length: args.fix_header_length,
        fix_checksums: args.fix_checksums,
        drop_unsupported: args.drop_unsupported,
        ..Plan::default()
    };
    plan.source_mac = mac("--src-mac", args.src_mac.as_deref(), args.sides.is_none())?;
    plan.destination_mac = mac("--dst-mac", args.dst_mac.as_deref(), args.sides.is_none())?;
    plan.replace_mac = replacements("--replace-mac", &args.replace_mac)?;
    plan.vlan = match (args.vlan_add, args.vlan_del) {
        (Some(id), _) => Some(Vlan::Add {
            id,
            priority: args.vlan_priority,
            cfi: args.vlan_dei.map(|dei| dei == 1),
            ether_type: args.vlan_kind.ether_type(),
        }),
        (None, true) => Some(Vlan::Delete),
        (None, false) => None,
    };
    if !args.map_ip.is_empty() {
        // Several options are one list.
        plan.map_client = map("--map-ip", &args.map_ip.join(","))?;
        plan.map_server = plan.map_client.clone();
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

/// `netdyno tcprewrite`.
pub fn tcprewrite(args: Tcprewrite) -> Result<u8> {
    refuse(&args)?;
    let mut plan = tcprewrite_plan(&args)?;
    let link = new_link(&args, &mut plan)?;
    let target = Target {
        path: &args.outfile,
        format: FileFormat::PcapMicroseconds,
        link,
        // What tcprewrite writes into the file's header.
        snaplen: Some(65_535),
    };
    // As far as the capture is sound, like libpcap's users.
    let input = Reader::open(&args.infile)?;
    let totals = pass(&args.infile, input, target, &plan, args.cachefile.as_deref())?;
    if totals.unsupported > 0 && !args.suppress_warnings {
        note(&format!(
            "Warning: {} without headers that can be edited",
            units::counted(totals.unsupported, "frame")
        ));
    }
    Ok(0)
}

/// What `--dlt` and its companions ask for: the link type, and the header in the plan.
fn new_link(args: &Tcprewrite, plan: &mut Plan) -> Result<Option<LinkType>> {
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
        Some(other) => bail!("--dlt={other} is not supported; enet, hdlc and user are"),
    }
}

/// What is not there yet is refused by its name, not passed over.
fn refuse(args: &Tcprewrite) -> Result<()> {
    let given = [
        ("--fuzz-seed", args.fuzz_seed.is_some(), "fuzzing is not supported"),
        ("--fragroute", args.fragroute.is_some(), "fragmenting is not supported"),
        ("--fragdir", args.fragdir.is_some(), "fragmenting is not supported"),
        ("--verbose", args.verbose, "show the written capture with `tcpdump -r` instead"),
        ("--load-opts", args.load_opts.is_some(), "write the options on the command line"),
        ("--save-opts", args.save_opts.is_some(), "write the options on the command line"),
    ];
    match given.into_iter().find(|(_, given, _)| *given) {
        Some((name, _, why)) => bail!("{name}: {why}"),
        None => Ok(()),
    }
}

fn tcprewrite_plan(args: &Tcprewrite) -> Result<Plan> {
    let mut plan = Plan {
        strip_fcs: args.efcs,
        skip_l2_broadcast: args.skipl2broadcast,
        scramble_mac: scramble_mac(args.enet_mac_seed, args.enet_mac_seed_keep_bytes),
        tos: args.tos,
        traffic_class: args.tclass,
        flow_label: args.flowlabel,
        tcp_shift: args.tcp_sequence.map(random::tcp_shift),
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

/// Edits the capture; the output gets its name only when it is whole.
fn pass(
    path: &Path,
    mut input: Reader,
    target: Target<'_>,
    plan: &Plan,
    cache: Option<&Path>,
) -> Result<Totals> {
    if same_file(path, target.path) {
        bail!("{} cannot be read and written at once: give another name for the output", path.display());
    }
    let cache = cache.map(|file| Cache::open(file).map(|cache| (file, cache))).transpose()?;
    let side = |number: u64| {
        let Some((file, cache)) = &cache else { return Ok(Some(Side::Client)) };
        match cache.way(number) {
            Some(Way::Primary) => Ok(Some(Side::Client)),
            Some(Way::Secondary) => Ok(Some(Side::Server)),
            Some(Way::Skip) => Ok(None),
            None => Err(EditError::Side(format!(
                "{} knows {}, and the capture has more: it is of another capture",
                file.display(),
                units::counted(cache.len(), "frame")
            ))),
        }
    };
    let stop = crate::run::stop_on_signals()?;
    let totals = rewrite::run(&mut input, target, plan, side, &stop)?;
    if let Some(why) = &input.notes().cut_short {
        note(&format!("Warning: {why}"));
    }
    Ok(totals)
}

/// Whether both names lead to one file. Names that lead nowhere yet do not.
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| (m.dev(), m.ino()));
    id(a).is_some_and(|a| id(b) == Some(a))
}
