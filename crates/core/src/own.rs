//! Congestion control and queues of other crates.
//!
//! A program registers its implementations once, before it reads a specification that names them, as modules of congestion
//! control are registered in an operating system's kernel. A specification then names an implementation `own:NAME`, with options
//! after the name. The built-in schemes, queues and protocols do not use the registries.

use crate::spec::SpecError;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLock};

/// The prefix of names of implementations of other crates.
pub const PREFIX: &str = "own:";

/// The part that the factories of all kinds have.
pub trait OwnFactory: fmt::Debug + Send + Sync {
    /// Returns a text that changes with the code. Stored results of simulations are reused only with the same text.
    fn version(&self) -> String;
    /// Checks the options: the text after the name, without the separator.
    ///
    /// # Errors
    /// The reason why the options are invalid, with advice.
    fn check(&self, options: &str) -> Result<(), String>;
}

/// An implementation of another crate with its options.
pub struct Own<F: ?Sized + 'static> {
    name: &'static str,
    options: &'static str,
    factory: &'static F,
}

impl<F: ?Sized> Own<F> {
    /// Returns the name, with [`PREFIX`].
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the options: the text after the name.
    pub const fn options(&self) -> &'static str {
        self.options
    }

    /// Returns the factory.
    pub const fn factory(&self) -> &'static F {
        self.factory
    }
}

impl<F: ?Sized> Clone for Own<F> {
    fn clone(&self) -> Own<F> {
        *self
    }
}

impl<F: ?Sized> Copy for Own<F> {}

impl<F: ?Sized> PartialEq for Own<F> {
    fn eq(&self, other: &Own<F>) -> bool {
        self.options == other.options && std::ptr::addr_eq(self.factory, other.factory)
    }
}

impl<F: ?Sized> fmt::Debug for Own<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("name", &self.name).field("options", &self.options).finish()
    }
}

/// An object of another crate. Its text form has no details, because traits of roles do not require one.
pub struct Boxed<T: ?Sized>(pub Box<T>);

impl<T: ?Sized> Deref for Boxed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for Boxed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ?Sized> fmt::Debug for Boxed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Boxed")
    }
}

/// The registered implementations of one kind. Entries are never removed, so specifications can refer to them.
#[derive(Debug)]
pub struct Registry<F: ?Sized + 'static> {
    /// The kind, for error messages.
    kind: &'static str,
    entries: RwLock<Vec<(&'static str, &'static F)>>,
}

/// Kind, name and version of all implementations, for [`versions_in`].
static VERSIONS: RwLock<Vec<(&str, &str, String)>> = RwLock::new(Vec::new());

/// The texts of options. Each text is stored once, so that a long program with many scenarios needs little memory.
static TEXTS: RwLock<Vec<&str>> = RwLock::new(Vec::new());

impl<F: OwnFactory + ?Sized> Registry<F> {
    /// Creates a registry without entries.
    pub const fn new(kind: &'static str) -> Registry<F> {
        Registry { kind, entries: RwLock::new(Vec::new()) }
    }

    /// Registers an implementation under a name of letters, digits, `-` and `_`. A later implementation of the same name
    /// replaces the earlier one for specifications that are read afterwards.
    ///
    /// # Errors
    /// If the name has other characters, or none.
    pub fn register(&self, name: &str, factory: Box<F>) -> Result<(), SpecError> {
        if name.is_empty() || name.chars().any(|letter| !is_of_name(letter)) {
            let what = format!("the name {name:?} must consist of letters, digits, - and _");
            return Err(SpecError::Unfit { of: self.kind, what });
        }
        let (name, version) = (interned(&format!("{PREFIX}{name}")), factory.version());
        let mut versions = VERSIONS.write().unwrap_or_else(PoisonError::into_inner);
        versions.retain(|(kind, known, _)| (*kind, *known) != (self.kind, name));
        versions.push((self.kind, name, version));
        versions.sort_unstable(); // the order of registration does not count
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(known, _)| *known != name);
        entries.push((name, Box::leak(factory)));
        Ok(())
    }

    /// Reads a specification `own:NAME`, followed by `separator` and options. Returns `None` if the text does not begin with
    /// [`PREFIX`].
    ///
    /// # Errors
    /// If no implementation of this name is registered, or it refuses the options.
    pub fn read(&self, text: &str, separator: char) -> Option<Result<Own<F>, SpecError>> {
        let text = text.trim();
        let length = text.strip_prefix(PREFIX)?.find(separator).map_or(text.len(), |at| PREFIX.len() + at);
        let (name, options) = (text[..length].trim(), text[length..].trim_start_matches(separator).trim());
        Some(self.named(name).and_then(|(name, factory)| match factory.check(options) {
            Ok(()) => Ok(Own { name, options: interned(options), factory }),
            Err(what) => Err(SpecError::Unfit { of: name, what }),
        }))
    }

    fn named(&self, name: &str) -> Result<(&'static str, &'static F), SpecError> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|(known, _)| *known == name).copied().ok_or_else(|| SpecError::UnknownName {
            kind: self.kind,
            name: name.to_owned(),
            known: match entries.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ") {
                names if names.is_empty() => {
                    "none, because this program has registered no implementation; register it first"
                        .to_owned()
                }
                names => format!("{names}, or register it first"),
            },
        })
    }
}

/// Returns the versions of the registered implementations that a specification names. Implementations of several kinds may have the
/// same name: it returns the versions of all.
pub fn versions_in(text: &str) -> Vec<String> {
    if !text.contains(PREFIX) {
        return Vec::new();
    }
    let versions = VERSIONS.read().unwrap_or_else(PoisonError::into_inner);
    let names = text.match_indices(PREFIX).map(|(at, _)| {
        let end = text[at + PREFIX.len()..].find(|letter| !is_of_name(letter));
        &text[at..end.map_or(text.len(), |end| at + PREFIX.len() + end)]
    });
    names
        .flat_map(|name| versions.iter().filter(move |(_, known, _)| *known == name))
        .map(|(_, _, version)| version.clone())
        .collect()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
}

fn interned(text: &str) -> &'static str {
    let mut texts = TEXTS.write().unwrap_or_else(PoisonError::into_inner);
    match texts.binary_search(&text) {
        Ok(at) => texts[at],
        Err(at) => {
            let text: &'static str = Box::leak(text.into());
            texts.insert(at, text);
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Factory: OwnFactory {}

    #[derive(Debug)]
    struct Number(u32);

    impl OwnFactory for Number {
        fn version(&self) -> String {
            self.0.to_string()
        }

        fn check(&self, options: &str) -> Result<(), String> {
            if options == "bad" { Err("write good".into()) } else { Ok(()) }
        }
    }

    impl Factory for Number {}

    fn registry() -> Registry<dyn Factory> {
        let registry: Registry<dyn Factory> = Registry::new("number");
        registry.register("one", Box::new(Number(1))).expect("a good name");
        registry
    }

    #[test]
    fn registered_name_is_found_with_its_options() {
        let registry = registry();
        let own = registry.read("own:one,a=2,b", ',').expect("own").expect("registered");
        assert_eq!((own.name(), own.options()), ("own:one", "a=2,b"));
        assert_eq!(registry.read("own:one", ',').expect("own").expect("registered").options(), "");
        assert_eq!(Some(Ok(own)), registry.read("own:one , a=2,b", ','), "one factory and equal options");
        assert!(registry.read("red,limit=5", ',').is_none());
    }

    #[test]
    fn unknown_names_and_bad_options_are_refused_with_advice() {
        let registry = registry();
        let wrong = |text| registry.read(text, ',').expect("own").expect_err("wrong on purpose").to_string();
        assert_eq!(
            wrong("own:two"),
            "there is no number \"own:two\"; choose one of: own:one, or register it first"
        );
        assert!(wrong("own:one,bad").contains("write good"), "{}", wrong("own:one,bad"));
        let refused = registry.register("a b", Box::new(Number(0))).expect_err("a space");
        assert!(refused.to_string().contains("letters, digits"), "{refused}");
    }

    #[test]
    fn version_follows_the_newest_implementation_of_a_name() {
        let registry: Registry<dyn Factory> = Registry::new("number");
        registry.register("versioned", Box::new(Number(3))).expect("a good name");
        assert_eq!(versions_in("ormcc,policy=own:versioned:5"), ["3"]);
        registry.register("versioned", Box::new(Number(4))).expect("a good name");
        assert_eq!(versions_in("own:versioned,own:unknown"), ["4"]);
        assert!(versions_in("versioned").is_empty());
        let other: Registry<dyn Factory> = Registry::new("letter");
        other.register("versioned", Box::new(Number(5))).expect("a good name");
        assert_eq!(versions_in("own:versioned"), ["5", "4"], "a letter and a number");
    }
}
