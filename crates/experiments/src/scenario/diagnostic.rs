//! Faults of a scenario file, with their positions.

use std::fmt;
use std::ops::Range;

/// A fault in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The fault, as a sentence.
    pub message: String,
    /// Label under the marked text.
    pub label: String,
    /// Suggested correction.
    pub help: Option<String>,
    /// Range of bytes in the text.
    pub span: Range<usize>,
}

/// All faults in a file, or all warnings about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    file: String,
    text: String,
    /// The first diagnostics, at most [`MAX`].
    all: Vec<Diagnostic>,
    /// Number of all diagnostics.
    count: usize,
    severity: miette::Severity,
}

/// Maximum number of stored diagnostics. A reader needs no more, and rendering searches the text once per diagnostic.
const MAX: usize = 100;

/// Output style of diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosticStyle {
    /// Lines and carets without colours.
    Plain,
    /// Lines and carets with ANSI colours.
    Coloured,
}

impl Diagnostic {
    /// Returns a diagnostic of a fault at `span`.
    pub(crate) fn new(
        span: &Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic { message: message.into(), label: label.into(), help: None, span: span.clone() }
    }

    /// Adds a suggested correction.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// Returns the item of `known` that is most similar to `word`, or `None` if no item is similar.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .filter(|(distance, known)| *distance <= (known.len().max(word.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns a "did you mean" help text with the most similar known word. If no known word is similar, the text lists all known
/// words.
pub(crate) fn meant(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("known here: {}", known.join(", ")),
    }
}

impl Diagnostics {
    /// Returns the name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Collects the diagnostics of the file with this name and text.
    pub(crate) fn new(file: &str, text: &str, all: Vec<Diagnostic>) -> Diagnostics {
        let mut all = all;
        all.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        let (mut once, mut place): (Vec<Diagnostic>, usize) = (Vec::new(), 0);
        for diagnostic in all {
            // `place` is the index of the first diagnostic at the position of `diagnostic`. Equal diagnostics at one position are
            // stored once.
            if once.get(place).is_none_or(|first| first.span != diagnostic.span) {
                place = once.len();
            }
            if !once[place..].contains(&diagnostic) {
                once.push(diagnostic);
            }
        }
        let count = once.len();
        once.truncate(MAX);
        let severity = miette::Severity::Error;
        Diagnostics { file: file.to_owned(), text: text.to_owned(), all: once, count, severity }
    }

    /// Collects warnings about the file with this name and text.
    pub(crate) fn warnings(file: &str, text: &str, all: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics { severity: miette::Severity::Warning, ..Diagnostics::new(file, text, all) }
    }

    /// Iterates over the first hundred diagnostics, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.all.iter()
    }

    /// Returns the number of all diagnostics.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the line and the column of a diagnostic, counted from 1. Columns count characters.
    pub fn position(&self, diagnostic: &Diagnostic) -> (usize, usize) {
        let before = &self.text[..diagnostic.span.start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        (line, column)
    }

    /// Renders each diagnostic with its line of the file, and with a caret under the diagnostic's position.
    pub fn render(&self, look: DiagnosticStyle) -> String {
        let theme = match look {
            DiagnosticStyle::Plain => miette::GraphicalTheme::unicode_nocolor(),
            DiagnosticStyle::Coloured => miette::GraphicalTheme::unicode(),
        };
        let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(110).with_context_lines(1);
        let source = miette::NamedSource::new(&self.file, self.text.clone()).with_language("toml");
        let mut out = String::new();
        for diagnostic in &self.all {
            let view = View { diagnostic, source: &source, length: self.text.len(), severity: self.severity };
            handler.render_report(&mut out, &view).expect("a string takes all that is written");
        }
        if self.count > self.all.len() {
            out.push_str(&format!("... and {} more\n", self.count - self.all.len()));
        }
        out
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, diagnostic) in self.all.iter().enumerate() {
            let (line, column) = self.position(diagnostic);
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{line}:{column}: {}", self.file, diagnostic.message)?;
            if let Some(help) = &diagnostic.help {
                write!(f, "; {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// A diagnostic with the fields that the renderer needs.
#[derive(Debug)]
struct View<'a> {
    diagnostic: &'a Diagnostic,
    source: &'a miette::NamedSource<String>,
    length: usize,
    severity: miette::Severity,
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for View<'_> {}

impl miette::Diagnostic for View<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.diagnostic.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        let start = self.diagnostic.span.start.min(self.length);
        let end = self.diagnostic.span.end.clamp(start, self.length);
        let label = miette::LabeledSpan::new(Some(self.diagnostic.label.clone()), start, end - start);
        Some(Box::new(std::iter::once(label)))
    }
}
