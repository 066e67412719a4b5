//! Files to start from: each runs within seconds and shows one more feature.

/// A file to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// Name in `faircast sim new`.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// The file.
    pub text: &'static str,
}

/// All of them.
pub const TEMPLATES: &[Template] = &[
    Template {
        name: "dumbbell",
        summary: "one bottleneck, one multicast session, one TCP flow",
        text: include_str!("templates/dumbbell.toml"),
    },
    Template {
        name: "star",
        summary: "many bottlenecks, one of them slow, with changes over time and claims",
        text: include_str!("templates/star.toml"),
    },
    Template {
        name: "tree",
        summary: "a tree with slow links and traffic on every link",
        text: include_str!("templates/tree.toml"),
    },
    Template {
        name: "sweep",
        summary: "the same network with other numbers, once for each",
        text: include_str!("templates/sweep.toml"),
    },
];

/// The file of this name.
pub fn template(name: &str) -> Option<&'static str> {
    TEMPLATES.iter().find(|template| template.name == name).map(|template| template.text)
}
