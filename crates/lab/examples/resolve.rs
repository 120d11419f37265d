//! Says where an interface is: `in_lab resolve rx0`, `resolve eth0@blue`.

use netdyno_lab as lab;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = std::env::args().nth(1).ok_or("usage: resolve IFACE[@NAMESPACE]")?;
    let located = lab::resolve(&spec)?;
    let found = located.run_in(|| port::interface::Interface::by_name(&located.name))??;
    let place = if located.namespace.is_some() { "elsewhere" } else { "here" };
    println!("{}: {place}, index {}", found.name, found.index);
    Ok(())
}
