//! Parts of a report, and their output as Markdown and HTML.

use super::html;
use super::text::Grid;
use crate::plot::Figure;
use std::fmt::Write as _;

/// A part of a report.
#[derive(Debug, Clone)]
pub(crate) enum Block<'a> {
    /// A heading and its level; 1 is the title of the page.
    Heading(u8, String),
    /// A paragraph. The first string is the emphasized beginning of the paragraph; it may be empty.
    Text(&'static str, String),
    /// A list, one item per line.
    List(Vec<String>),
    /// A table.
    Table(Grid),
    /// A figure, and its path relative to the page.
    Figure(&'a Figure, String),
    /// A collapsible file: its name and text.
    File(&'a str, &'a str),
    /// A shell command.
    Command(String),
    /// A link to another page: its path and text.
    Link(String, String),
}

impl Block<'_> {
    fn markdown(&self) -> String {
        match self {
            Block::Heading(level, text) => format!("{} {text}\n", "#".repeat(usize::from(*level))),
            Block::Text("", text) => format!("{text}\n"),
            Block::Text(label, text) => format!("**{label}.** {text}\n"),
            Block::List(lines) => lines.iter().map(|line| format!("- {line}\n")).collect(),
            Block::Table(grid) => grid.markdown(),
            Block::Figure(figure, path) => format!("![{}]({path})\n", figure.title),
            Block::File(name, _) => format!("Scenario: `{name}`\n"),
            Block::Command(command) => format!("Repeat: `{command}`\n"),
            Block::Link(path, text) => format!("[{text}]({path})\n"),
        }
    }

    fn html(&self) -> String {
        let e = html::escaped;
        match self {
            Block::Heading(level, text) => format!("<h{level}>{}</h{level}>\n", e(text)),
            Block::Text("", text) => html::paragraph(text),
            Block::Text(label, text) => format!("<p><b>{label}.</b> {}</p>\n", e(text)),
            Block::List(lines) => {
                let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", e(line))).collect();
                format!("<ul>\n{items}</ul>\n")
            }
            Block::Table(grid) => grid.html(),
            Block::Figure(figure, _) => format!("<figure>\n{}</figure>\n", figure.svg()),
            Block::File(name, text) => format!(
                "<details><summary>Scenario: {}</summary>\n<pre>{}</pre></details>\n",
                e(name),
                e(text)
            ),
            Block::Command(command) => {
                format!("<p class=\"soft\">Repeat: <code>{}</code></p>\n", e(command))
            }
            Block::Link(path, text) => format!("<p><a href=\"{}\">{}</a></p>\n", e(path), e(text)),
        }
    }
}

/// Returns all blocks as Markdown.
pub(super) fn markdown(blocks: &[Block<'_>]) -> String {
    blocks.iter().map(Block::markdown).collect::<Vec<_>>().join("\n")
}

/// Returns all blocks as an HTML page.
pub(crate) fn page(title: &str, blocks: &[Block<'_>]) -> String {
    let mut body = String::new();
    blocks.iter().for_each(|block| write!(body, "{}", block.html()).expect("a string takes everything"));
    html::page(title, &body)
}
