//! Template files. Each template runs within seconds and adds one feature to the previous template.

/// A template file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// Name in `faircast sim new`.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

/// All templates.
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
        summary: "one network, simulated with several values of some keys",
        text: include_str!("templates/sweep.toml"),
    },
];

/// Returns the text of the template of this name.
pub fn template(name: &str) -> Option<&'static str> {
    TEMPLATES.iter().find(|template| template.name == name).map(|template| template.text)
}
