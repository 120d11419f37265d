//! Choices that are written as words.

/// A choice among words.
pub trait Word: Sized + Copy + 'static {
    /// All there are, in the order in which they are listed, and how each is written.
    const ALL: &'static [(Self, &'static str)];

    /// How it is written.
    fn name(self) -> &'static str;

    /// What a word means.
    fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == word).map(|(choice, _)| *choice)
    }
}

/// Declares an enum whose variants are written as words: in JSON, in its schema and wherever they are printed.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)*
        }

        impl crate::Word for $name {
            const ALL: &'static [(Self, &'static str)] = &[$(($name::$variant, $word)),*];

            fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(crate::Word::name(*self))
            }
        }
    };
}

pub(crate) use words;
