//! `#[settings]`: a struct of which each member is a setting, declared once.
//!
//! What is written of a member (its name, its type, its documentation, and `#[setting(...)]`) becomes serde's rules, the schema's text
//! and a row of the table `MEMBERS` that clients make their own words of: a command line its options and help, errors their names.
//! The macro is used by crate `spec` alone, and names what stands there.
//!
//! In `#[setting(...)]`:
//!
//! - `option = "meter"`: the long option, where it is not the member's name with dashes; `short = 'T'`; `alias = "seed"`.
//! - `typed_by_place`: it has no option, but stands by itself.
//! - `value = "HOW"`: what its value is called.
//! - `default = "auto"`: what it is if nothing is said; in help, and in the schema, of what is no `Option` by the type's own `Default`.
//! - `heading = "Measure"`, `expert`, `rare`: where help shows it; `brief = "..."`: what `-h` says in the place of the first sentence.
//! - `least = 1`, `most = 100`: bounds of a number.
//! - `excludes("a", "b")`, `needs("a")`: other members, by their paths in the job or the ends of these.
//! - `reads = "Share"`: its text, which is kept as it is, has to be one that this type can be read from.
//! - `hyphens`: its value may begin with a dash.
//! - `within`: the member is a struct of settings; their paths begin with its name. With `option = "lab"` that option alone makes one.
//! - `apart`: clients have their own ways to say it, and the table has nothing of it.
//! - `optional`, `needed`: whether there is a job without it, where the type says otherwise.
//! - `file`: its value may be the name of a file, although it is text.
//! - `shorthand(option = "topspeed", means = "top", text = "...")`: another option, which stands for one of its values; with
//!   `value = "CPU"` it takes one itself, which is put where `means` has `{}`, and several if the member takes several with commas. It may
//!   have `brief`, `heading`, `expert`, `excludes` of its own, and `needs`, which names options. With `rest = "server"` its value is two with
//!   a colon between: the first is this member's, the rest is that one's.
//! - `unnamed`: it has no option but its shorthands.
//! - `explained`: help says what each of its words means.
//! - `consent`: a job has it only if whoever runs the job says so, too.
//! - `other_word = "trunc=truncate"`: another way to write one of its values. `comma`: several values with commas.
//! - `always`: files and results always say it, even if it is an empty list.
//! - `initial = "0.0.0.0:2055"`: what a list has if nothing is said of it, which files and results say then.
//!
//! `#[settings(heading = "Edits")]` is the heading of all of a struct. `#[settings(perhaps)]`: whoever holds it may do without, and
//! so nothing of it is needed by itself.
//!
//! A member `#[part] pace: pace!()` is no member: in its place stand those that the macro `pace` of `spec::parts` has, which several
//! structs have alike.

#![deny(missing_docs)]

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, Field, Fields, Ident, Lit, LitChar, LitInt, LitStr,
    Path, Result, Token, Type, meta::ParseNestedMeta, parse_macro_input, punctuated::Punctuated,
};

/// See the crate's documentation.
#[proc_macro_attribute]
pub fn settings(of_all: TokenStream, item: TokenStream) -> TokenStream {
    let (mut heading, mut perhaps) = (None, false);
    let said = Tokens::from(of_all.clone());
    let of_all_parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("perhaps") {
            perhaps = true;
            return Ok(());
        }
        if !meta.path.is_ident("heading") {
            return Err(meta.error("of all settings a heading is said, or `perhaps`"));
        }
        heading = Some(meta.value()?.parse::<LitStr>()?.value());
        Ok(())
    });
    parse_macro_input!(of_all with of_all_parser);
    let input = parse_macro_input!(item as DeriveInput);
    if let Some(with_part) = with_part(&input, &said) {
        return with_part.into();
    }
    expanded(&input, heading.as_deref(), perhaps).unwrap_or_else(Error::into_compile_error).into()
}

/// The struct with the members of its first part, if it has one, for the macro to be asked again.
fn with_part(input: &DeriveInput, said: &Tokens) -> Option<Tokens> {
    let DeriveInput { attrs, vis, ident, .. } = input;
    let Data::Struct(data) = &input.data else { return None };
    let is_part = |field: &Field| field.attrs.iter().any(|attribute| attribute.path().is_ident("part"));
    let at = data.fields.iter().position(is_part)?;
    let Type::Macro(part) = &data.fields.iter().nth(at)?.ty else { return None };
    let (part, before) = (&part.mac.path, data.fields.iter().take(at));
    let after = data.fields.iter().skip(at + 1);
    Some(quote! {
        #part! { [#[::settings::settings(#said)] #(#attrs)* #vis struct #ident] [#(#before,)*] [#(#after,)*] }
    })
}

/// What is said of another option of a member.
#[derive(Default)]
struct Shorthand {
    option: String,
    value: Option<String>,
    means: String,
    text: String,
    brief: Option<String>,
    heading: Option<String>,
    excludes: Vec<String>,
    needs: Vec<String>,
    rest: Option<String>,
    expert: bool,
}

impl Shorthand {
    fn read(meta: &ParseNestedMeta<'_>) -> Result<Shorthand> {
        let mut said = Shorthand::default();
        meta.parse_nested_meta(|meta| {
            match meta.path.require_ident()?.to_string().as_str() {
                "option" => said.option = text(&meta)?,
                "value" => said.value = Some(text(&meta)?),
                "means" => said.means = text(&meta)?,
                "text" => said.text = text(&meta)?,
                "brief" => said.brief = Some(text(&meta)?),
                "heading" => said.heading = Some(text(&meta)?),
                "excludes" => said.excludes = names(&meta)?,
                "needs" => said.needs = names(&meta)?,
                "rest" => said.rest = Some(text(&meta)?),
                "expert" => said.expert = true,
                _ => return Err(meta.error("crate settings lists what may be said of a shorthand")),
            }
            Ok(())
        })?;
        Ok(said)
    }

    /// Its row, of a setting that stands under `heading`.
    fn row(&self, heading: Option<&str>) -> Tokens {
        let Shorthand { option, value, means, text, brief, heading: own, excludes, needs, rest, expert } =
            self;
        let heading = some(&if *expert { Some("Expert") } else { own.as_deref().or(heading) });
        let [value, brief, rest] = [value, brief, rest].map(some);
        quote! {
            crate::setting::Shorthand {
                option: #option,
                value: #value,
                means: #means,
                text: #text,
                brief: #brief,
                heading: #heading,
                excludes: &[#(#excludes),*],
                needs: &[#(#needs),*],
                rest: #rest,
            }
        }
    }
}

/// `= "..."`
fn text(meta: &ParseNestedMeta<'_>) -> Result<String> {
    meta.value()?.parse::<LitStr>().map(|text| text.value())
}

/// `("...", "...")`
fn names(meta: &ParseNestedMeta<'_>) -> Result<Vec<String>> {
    let inner;
    syn::parenthesized!(inner in meta.input);
    let names = Punctuated::<LitStr, Token![,]>::parse_terminated(&inner)?;
    Ok(names.iter().map(LitStr::value).collect())
}

/// What is said of one member.
#[derive(Default)]
struct Said {
    option: Option<String>,
    short: Option<char>,
    aliases: Vec<String>,
    value: String,
    default: Option<String>,
    initial: Option<String>,
    heading: Option<String>,
    brief: Option<String>,
    other_words: Vec<String>,
    least: Option<u64>,
    most: Option<u64>,
    excludes: Vec<String>,
    needs: Vec<String>,
    reads: Option<Path>,
    by_place: bool,
    expert: bool,
    rare: bool,
    hyphens: bool,
    within: bool,
    always: bool,
    comma: bool,
    apart: bool,
    optional: bool,
    needed: bool,
    file: bool,
    unnamed: bool,
    explained: bool,
    consent: bool,
    shorthands: Vec<Shorthand>,
}

impl Said {
    fn read(attributes: &[Attribute]) -> Result<Said> {
        let mut said = Said::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("setting")) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.require_ident()?.to_string();
                let text = || text(&meta);
                let number = || meta.value()?.parse::<LitInt>()?.base10_parse();
                match name.as_str() {
                    "option" => said.option = Some(text()?),
                    "short" => said.short = Some(meta.value()?.parse::<LitChar>()?.value()),
                    "alias" => said.aliases.push(text()?),
                    "value" => said.value = text()?,
                    "default" => said.default = Some(text()?),
                    "initial" => said.initial = Some(text()?),
                    "heading" => said.heading = Some(text()?),
                    "brief" => said.brief = Some(text()?),
                    "least" => said.least = Some(number()?),
                    "most" => said.most = Some(number()?),
                    "excludes" => said.excludes = names(&meta)?,
                    "needs" => said.needs = names(&meta)?,
                    "reads" => said.reads = Some(meta.value()?.parse::<LitStr>()?.parse()?),
                    "other_word" => said.other_words.push(text()?),
                    "comma" => said.comma = true,
                    "typed_by_place" => said.by_place = true,
                    "expert" => said.expert = true,
                    "rare" => said.rare = true,
                    "hyphens" => said.hyphens = true,
                    "within" => said.within = true,
                    "always" => said.always = true,
                    "apart" => said.apart = true,
                    "optional" => said.optional = true,
                    "needed" => said.needed = true,
                    "file" => said.file = true,
                    "unnamed" => said.unnamed = true,
                    "explained" => said.explained = true,
                    "consent" => said.consent = true,
                    "shorthand" => said.shorthands.push(Shorthand::read(&meta)?),
                    _ => return Err(meta.error("crate settings lists what may be said of a setting")),
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}

/// What is made of one member: the member itself, its row of the table, and how text is put into it.
struct Made {
    member: Tokens,
    row: Tokens,
    put: Tokens,
    /// What it has if nothing is said, as a function of the struct.
    initial: Tokens,
}

fn expanded(input: &DeriveInput, heading: Option<&str>, perhaps: bool) -> Result<Tokens> {
    let DeriveInput { attrs, vis, ident, .. } = input;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(ident, "settings are a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(ident, "settings have names"));
    };
    let made = fields
        .named
        .iter()
        .map(|field| of_member(ident, field, heading, perhaps))
        .collect::<Result<Vec<_>>>()?;
    let members = made.iter().map(|made| &made.member);
    let rows = made.iter().map(|made| &made.row);
    let puts = made.iter().map(|made| &made.put);
    let initials = made.iter().map(|made| &made.initial);
    Ok(quote! {
        #(#attrs)*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        #vis struct #ident {
            #(#members,)*
        }

        #(#initials)*

        impl crate::setting::Settings for #ident {
            const MEMBERS: &'static [crate::setting::Member] = &[#(#rows)*];

            fn put(&mut self, path: &str, text: &std::ffi::OsStr) -> Option<Result<(), String>> {
                #(#puts)*
                None
            }
        }

        impl crate::setting::Holder for #ident {
            const HELD: &'static [crate::setting::Member] = <#ident as crate::setting::Settings>::MEMBERS;
            type Held = #ident;

            fn held(&mut self) -> &mut #ident {
                self
            }
        }
    })
}

fn of_member(of: &Ident, field: &Field, heading: Option<&str>, perhaps: bool) -> Result<Made> {
    let mut said = Said::read(&field.attrs)?;
    said.heading = said.heading.or(said.expert.then_some("Expert").or(heading).map(str::to_owned));
    let (vis, ident, kind) = (&field.vis, &field.ident, &field.ty);
    let rust = ident.as_ref().map(ToString::to_string).unwrap_or_default();
    let name = renamed(&field.attrs)?.unwrap_or(rust);
    let text = documentation(&field.attrs);
    let kept =
        field.attrs.iter().filter(|each| !each.path().is_ident("setting") && !each.path().is_ident("doc"));
    let (serde, initial) = match &said.initial {
        None => (serde_of(field, &said)?, Tokens::new()),
        Some(text) => initially(of, &name, kind, text),
    };
    let plain = in_schema(&text, kind, &said);
    let member = quote! { #[doc = #plain] #(#kept)* #serde #vis #ident: #kind };
    if said.apart {
        return Ok(Made { member, row: Tokens::new(), put: Tokens::new(), initial });
    }
    if said.within {
        let by_itself = said.option.is_some();
        let flag = by_itself.then(|| row(&name, &syn::parse_quote!(bool), &text, &said, false));
        let row = quote! {
            #flag
            crate::setting::Member::Within(#name, <#kind as crate::setting::Holder>::HELD),
        };
        let put = quote! {
            if #by_itself && path == #name {
                crate::setting::Holder::held(&mut self.#ident);
                return Some(Ok(()));
            }
            if let Some(path) = path.strip_prefix(#name).and_then(|rest| rest.strip_prefix('.')) {
                return crate::setting::Settings::put(crate::setting::Holder::held(&mut self.#ident), path, text);
            }
        };
        return Ok(Made { member, row, put, initial });
    }
    let required = said.needed || !(perhaps || said.optional) && is_needed(kind, &said);
    let row = row(&name, kind, &text, &said, required);
    let put = quote! {
        if path == #name {
            return Some(crate::setting::Value::put(&mut self.#ident, text));
        }
    };
    Ok(Made { member, row, put, initial })
}

/// serde's rule for a member that has something if nothing is said, and the function that it names.
fn initially(of: &Ident, name: &str, kind: &Type, text: &str) -> (Tokens, Tokens) {
    let function = quote::format_ident!("initial_{}", name);
    let path = format!("{of}::{function}");
    let initial = quote! {
        impl #of {
            fn #function() -> #kind {
                let mut value = <#kind>::default();
                // A test of crate `spec` holds that it is a value.
                let _ = crate::setting::Value::put(&mut value, std::ffi::OsStr::new(#text));
                value
            }
        }
    };
    (quote! { #[serde(default = #path)] }, initial)
}

/// A row of the table.
fn row(name: &str, kind: &Type, text: &str, said: &Said, required: bool) -> Tokens {
    let Said { short, aliases, value, default, heading, brief, least, most, excludes, needs, .. } = said;
    let Said { rare, hyphens, comma, file, consent, initial, .. } = said;
    let shorthands = said.shorthands.iter().map(|shorthand| shorthand.row(heading.as_deref()));
    let other_words = said.other_words.iter().map(|pair| {
        let (other, word) = pair.split_once('=').unwrap_or((pair, pair));
        quote! { (#other, #word) }
    });
    let option = match (&said.option, said.by_place || said.unnamed) {
        (_, true) => None,
        (Some(option), _) => Some(option.clone()),
        (None, _) => Some(name.replace('_', "-")),
    };
    let [option, default, initial, heading, brief] = [&option, default, initial, heading, brief].map(some);
    let [least, most] = [least, most].map(|bound| some(&bound.as_ref()));
    let short = some(short);
    let reads = match &said.reads {
        Some(of) => quote! { crate::setting::reads_as::<#of> },
        None => quote! { <#kind as crate::setting::Value>::reads },
    };
    let meanings = match said.explained {
        true => quote! { <#kind as crate::setting::Value>::MEANINGS },
        false => quote! { Vec::new },
    };
    quote! {
        crate::setting::Member::One(&crate::setting::Setting {
            name: #name,
            option: #option,
            short: #short,
            aliases: &[#(#aliases),*],
            value: #value,
            text: #text,
            brief: #brief,
            heading: #heading,
            rare: #rare,
            default: #default,
            initial: #initial,
            bounds: (#least, #most),
            excludes: &[#(#excludes),*],
            needs: &[#(#needs),*],
            hyphens: #hyphens,
            required: #required,
            shape: <#kind as crate::setting::Value>::SHAPE,
            is_path: #file || <#kind as crate::setting::Value>::IS_PATH,
            comma: #comma,
            other_words: &[#(#other_words),*],
            words: <#kind as crate::setting::Value>::WORDS,
            meanings: #meanings,
            reads: #reads,
            shorthands: &[#(#shorthands),*],
            consent: #consent,
        }),
    }
}

fn some<T: quote::ToTokens>(value: &Option<T>) -> Tokens {
    match value {
        Some(value) => quote! { Some(#value) },
        None => quote! { None },
    }
}

/// Whether a job without it is none.
fn is_needed(kind: &Type, said: &Said) -> bool {
    said.default.is_none() && !["Option", "Vec", "bool"].iter().any(|known| is_a(kind, known))
}

/// serde's rules for a member of which none is written.
fn serde_of(field: &Field, said: &Said) -> Result<Tokens> {
    let mut reads_itself = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let rules = attribute.parse_args_with(Punctuated::<syn::Meta, Token![,]>::parse_terminated)?;
        if rules
            .iter()
            .any(|rule| !rule.path().is_ident("rename") && !rule.path().is_ident("deserialize_with"))
        {
            return Ok(Tokens::new());
        }
        reads_itself |= rules.iter().any(|rule| rule.path().is_ident("deserialize_with"));
    }
    let kind = &field.ty;
    Ok(if said.always {
        Tokens::new()
    } else if is_a(kind, "Option") && !reads_itself {
        quote! { #[serde(skip_serializing_if = "Option::is_none")] }
    } else if is_a(kind, "Option") {
        quote! { #[serde(default, skip_serializing_if = "Option::is_none")] }
    } else if is_a(kind, "Vec") {
        quote! { #[serde(default, skip_serializing_if = "Vec::is_empty")] }
    } else if is_a(kind, "bool") || said.default.is_some() {
        quote! { #[serde(default, skip_serializing_if = "crate::setting::is_default")] }
    } else {
        Tokens::new()
    })
}

/// Whether a type's last word is this one.
fn is_a(kind: &Type, name: &str) -> bool {
    matches!(kind, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

/// What a file calls a member that has another name in Rust.
fn renamed(attributes: &[Attribute]) -> Result<Option<String>> {
    let mut name = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let rules = attribute.parse_args_with(Punctuated::<syn::Meta, Token![,]>::parse_terminated)?;
        for rule in rules {
            if let syn::Meta::NameValue(rule) = &rule
                && rule.path.is_ident("rename")
                && let Expr::Lit(ExprLit { lit: Lit::Str(to), .. }) = &rule.value
            {
                name = Some(to.value());
            }
        }
    }
    Ok(name)
}

/// What the schema says of a member. Settings are spoken of as `.rate` where each client has its own word; here they are members, as they
/// stand. What a member is that may be left out, and has no value of its type then, is said in words.
fn in_schema(text: &str, kind: &Type, said: &Said) -> String {
    let quoted = text.split('`').enumerate();
    let plain =
        quoted.map(|(at, part)| if at % 2 == 1 { part.strip_prefix('.').unwrap_or(part) } else { part });
    let plain = plain.collect::<Vec<_>>().join("`");
    match &said.default {
        Some(default) if is_a(kind, "Option") => format!("{plain} Default: {default}."),
        _ => plain,
    }
}

/// The documentation, its lines as one.
fn documentation(attributes: &[Attribute]) -> String {
    let lines =
        attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| {
            match &attribute.meta.require_name_value().ok()?.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
                _ => None,
            }
        });
    lines.collect::<Vec<_>>().join(" ")
}
