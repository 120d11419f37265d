//! The plan that tcprewrite's options ask for, and the link types that edited captures may have.

use crate::cli::edit::{FixLengthChoice, LinkChoice, TcprewriteEdits, VlanMode};
use ::edit::rewrite::{self, FixLength, NewHeader, Plan, Vlan, random};
use anyhow::{Context, Result, bail};
use job::kinds::edits::{fuzz, mac, map, ports, replacements, scramble_mac, sided_maps, ttl};
use wire::LinkType;

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
    asked(args, sided).map_err(|mut error| {
        if let Some(bad) = error.downcast_mut::<rewrite::BadValue>() {
            bad.as_of_tcprewrite();
        }
        error
    })
}

fn asked(args: &TcprewriteEdits, sided: bool) -> Result<Plan> {
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

fn fix_length(choice: FixLengthChoice) -> FixLength {
    match choice {
        FixLengthChoice::Pad => FixLength::Pad,
        FixLengthChoice::Truncate => FixLength::Truncate,
        FixLengthChoice::Delete => FixLength::Delete,
    }
}
