//! What frames begin with.

#[doc(inline)]
pub use ::wire::mac::BadMac;
#[doc(inline)]
pub use ::wire::{LinkType, Mac};
