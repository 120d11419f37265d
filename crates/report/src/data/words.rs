//! Words that stand in a result as text, as enums: who asks for one cannot misspell it, and who reads a result of a later version
//! keeps those that this version does not know.

/// Declares such an enum. Its values are written and read as the texts.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$meant:meta])* $word:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$meant])* $word,)+
            /// A word that this version does not know, or none.
            Other(String),
        }

        impl $name {
            /// Those that are known.
            pub const ALL: &'static [Self] = &[$(Self::$word),+];

            /// As it stands in a result.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$word => $text,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$word,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$word,)+
                    _ => Self::Other(text),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> String {
                match word {
                    $name::Other(text) => text,
                    known => known.as_str().to_owned(),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&$crate::data::units::printable(self.as_str()))
            }
        }
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    words! {
        /// For the test.
        Fruit {
            /// One.
            Apple = "apple",
            /// Two.
            BloodOrange = "blood orange",
        }
    }

    #[test]
    fn a_word_is_written_and_read_as_its_text_and_an_unknown_one_is_kept() {
        for word in Fruit::ALL {
            assert_eq!(Fruit::from(word.as_str()), *word);
            let json = serde_json::to_string(word).expect("JSON");
            assert_eq!(json, format!("\"{}\"", word.as_str()));
            assert_eq!(serde_json::from_str::<Fruit>(&json).expect("a word"), *word);
        }
        let other: Fruit = serde_json::from_str("\"pear\"").expect("a word");
        assert_eq!((&other, other.as_str()), (&Fruit::Other("pear".to_owned()), "pear"));
        assert_eq!(String::from(other), "pear");
        assert_eq!(Fruit::default().as_str(), "");
        // What is shown cannot move the cursor.
        assert_eq!(Fruit::from("a\u{1b}[2J").to_string(), "a\\u{1b}[2J");
        assert_eq!(format!("{:>13}", Fruit::BloodOrange), " blood orange");
    }
}
