//! The builders know the layers and fields of the expression language, and no others.

use plugin_sdk::packet::LAYERS;
use wire::proto::Protocol;

#[test]
fn every_layer_and_field_has_a_method_and_is_known() {
    for (layer, fields) in LAYERS {
        let spec = Protocol::by_name(layer).unwrap_or_else(|| panic!("there is no layer {layer}")).spec();
        for field in *fields {
            let known = spec.field(field).is_some() || spec.list_names().contains(field);
            assert!(known, "{layer} has no {field}");
        }
    }
    let built = |name: &str| LAYERS.iter().any(|(layer, _)| *layer == name);
    for protocol in Protocol::ALL {
        // Payload has a builder of its own; other routing headers than SRv6's are rare. Messages of applications have
        // lists and texts in them: `written` takes those as the language has them.
        let name = protocol.spec().name;
        let message = !protocol.spec().parts().is_empty() || protocol == Protocol::Ntp;
        assert!(
            built(name) || message || matches!(protocol, Protocol::Raw | Protocol::Routing),
            "no builder for {name}"
        );
    }
}
