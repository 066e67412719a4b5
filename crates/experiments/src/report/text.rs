//! Tables with aligned columns.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// A table of texts.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// The page to which the first cell of a row links, by the index of the row.
    links: BTreeMap<usize, String>,
}

impl Grid {
    /// Returns a table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Grid {
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Grid { columns, ..Grid::default() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Adds a row whose first cell links to a page in HTML.
    pub fn linked_row(&mut self, path: String, cells: Vec<String>) {
        self.links.insert(self.rows.len(), path);
        self.rows.push(cells);
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table for a terminal: two spaces between columns, no trailing spaces.
    pub fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let heads: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut out = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let pad = " ".repeat(width - cell.chars().count());
                match self.columns[column].1 {
                    Align::Left => write!(line, "{cell}{pad}  "),
                    Align::Right => write!(line, "{pad}{cell}  "),
                }
                .expect("a string takes everything");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// Returns the table for a Markdown page.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let heads: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let marks: Vec<&str> = self
            .columns
            .iter()
            .map(|(_, align)| if *align == Align::Right { "---:" } else { "---" })
            .collect();
        let mut out = line(&heads);
        writeln!(out, "|{}|", marks.join("|")).expect("a string takes everything");
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        out
    }

    /// Returns the table for an HTML page. The text of a cell in the last column is also the cell's CSS class, which gives
    /// verdicts their colours.
    pub fn html(&self) -> String {
        let mut out = String::from("<div class=\"wide\"><table>\n<tr>");
        let class = |align| if align == Align::Right { " class=\"n\"" } else { "" };
        for (name, align) in &self.columns {
            write!(out, "<th{}>{}</th>", class(*align), super::html::escaped(name))
                .expect("a string takes everything");
        }
        out.push_str("</tr>\n");
        for (index, row) in self.rows.iter().enumerate() {
            out.push_str("<tr>");
            let mut link = self.links.get(&index);
            for ((_, align), cell) in self.columns.iter().zip(row) {
                let verdict = match cell.as_str() {
                    "holds" => Some("holds"),
                    "holds with a choice of ours" => Some("chosen"),
                    "undecided" => Some("undecided"),
                    "contradicts itself" => Some("contradicts"),
                    "fails" => Some("fails"),
                    "open" => Some("open"),
                    _ => None,
                };
                let class =
                    verdict.map_or_else(|| class(*align).to_owned(), |word| format!(" class=\"{word}\""));
                let mut text = super::html::escaped(cell);
                if let Some(path) = link.take() {
                    text = format!("<a href=\"{}\">{text}</a>", super::html::escaped(path));
                }
                write!(out, "<td{class}>{text}</td>").expect("a string takes everything");
            }
            out.push_str("</tr>\n");
        }
        out + "</table></div>\n"
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widths = cells.chain([&self.columns[column].0]).map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&[("flow", Align::Left), ("rate", Align::Right), ("", Align::Left)]);
        grid.row(vec!["a|b".into(), "9".into(), "holds".into()]);
        grid.row(vec!["multicast".into(), "1000".into()]);
        grid
    }

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_space() {
        assert_eq!(grid().text(), "flow       rate\na|b           9  holds\nmulticast  1000\n");
    }

    #[test]
    fn markdown_escapes_bars_and_html_has_classes_for_verdicts() {
        assert!(grid().markdown().starts_with("| flow | rate |  |\n|---|---:|---|\n| a\\|b | 9 | holds |\n"));
        assert!(grid().html().contains("<td class=\"n\">9</td><td class=\"holds\">holds</td>"));
    }
}
