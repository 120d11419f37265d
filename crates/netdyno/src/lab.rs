//! Hosts in network namespaces of their own and what joins them: a cable, or a device with a bottleneck and losses.

#[doc(inline)]
pub use ::lab::nat::Limits as NatLimits;
pub use ::lab::{
    Bottleneck, Device, Host, Kind, Lab, LabError, Loss, Namespace, Options, RECEIVER_INTERFACE,
    SENDER_INTERFACE, enter_user_namespace, is_privileged,
};
