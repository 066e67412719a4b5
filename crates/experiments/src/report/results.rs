//! The page of a run or of a comparison: tables, claims, figures and the scenario.

use super::block::{self, Block};
use super::text::Grid;
use crate::figures::Named;

/// Contents of the page.
#[derive(Debug)]
pub struct ResultsPage<'a> {
    /// Title.
    pub title: &'a str,
    /// Description of the run, a paragraph each.
    pub about: Vec<String>,
    /// Tables, each with a heading, which may be empty.
    pub tables: Vec<(String, Grid)>,
    /// Figures.
    pub figures: &'a [Named],
    /// File name and text of the scenario.
    pub scenario: (&'a str, &'a str),
    /// The command that repeats the run.
    pub command: String,
}

impl ResultsPage<'_> {
    /// Returns the page: HTML without references to other files.
    pub fn html(self) -> String {
        let mut blocks = vec![Block::Heading(1, self.title.to_owned())];
        blocks.extend(self.about.into_iter().map(|text| Block::Text("", text)));
        for (heading, grid) in self.tables.into_iter().filter(|(_, grid)| !grid.is_empty()) {
            if !heading.is_empty() {
                blocks.push(Block::Heading(2, heading));
            }
            blocks.push(Block::Table(grid));
        }
        blocks.extend(self.figures.iter().map(|(name, figure)| Block::Figure(figure, format!("{name}.svg"))));
        blocks.push(Block::File(self.scenario.0, self.scenario.1));
        blocks.push(Block::Command(self.command));
        block::page(self.title, &blocks)
    }
}
