//! Choices that are written as words.

/// A choice among words.
pub trait Word: Sized + Copy + 'static {
    /// All there are, in the order in which they are listed: how each is written, and what it means.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// How it is written.
    fn name(self) -> &'static str;

    /// What a word means.
    fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name, _)| *name == word).map(|(choice, ..)| *choice)
    }
}

/// Declares an enum whose variants are written as words: in JSON, in its schema and wherever they are printed. The first is the
/// default.
macro_rules! words {
    ($(#[doc = $about:literal])+ $name:ident {
        $(#[doc = $first_about:literal])+ $first:ident = $first_word:literal,
        $($(#[doc = $of:literal])+ $variant:ident = $word:literal,)*
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $(#[doc = $first_about])+
            #[default]
            #[serde(rename = $first_word)]
            $first,
            $($(#[doc = $of])+ #[serde(rename = $word)] $variant,)*
        }

        impl crate::Word for $name {
            const ALL: &'static [(Self, &'static str, &'static str)] = &[
                ($name::$first, $first_word, concat!($($first_about),+)),
                $(($name::$variant, $word, concat!($($of),+))),*
            ];

            fn name(self) -> &'static str {
                match self {
                    $name::$first => $first_word,
                    $($name::$variant => $word,)*
                }
            }
        }

        impl crate::setting::OneValue for $name {
            const WORDS: fn() -> Vec<&'static str> =
                || <$name as crate::Word>::ALL.iter().map(|(_, word, _)| *word).collect();
            const MEANINGS: fn() -> Vec<&'static str> =
                || <$name as crate::Word>::ALL.iter().map(|(.., means)| means.trim()).collect();

            fn of(text: &std::ffi::OsStr) -> Result<$name, String> {
                let known = text.to_str().and_then(<$name as crate::Word>::named);
                known.ok_or_else(|| "there is no such word".to_owned())
            }
        }

        crate::setting::held! { [] $name, One, $name, |place, value| *place = value; }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(crate::Word::name(*self))
            }
        }
    };
}

pub(crate) use words;
