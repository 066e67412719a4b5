//! The page as a document: with its files on the server, or as one file that opens without a server.

use crate::safe;
use serde::Serialize;

/// Returns the page with the present state, so that it shows numbers without waiting for an update.
pub fn served(state: &impl Serialize) -> String {
    with_state(INDEX, state)
}

/// Returns the page as one file, with the last state.
pub fn saved(state: &impl Serialize) -> String {
    let mut page = INDEX.to_owned();
    for (name, style) in [("uplot.css", PLOT_STYLE), ("page.css", STYLE)] {
        let link = format!("<link rel=\"stylesheet\" href=\"{name}\">");
        page = page.replace(&link, &format!("<style>{style}</style>"));
    }
    for (name, script) in [("uplot.js", PLOT_SCRIPT), ("network.js", NETWORK_SCRIPT), ("page.js", SCRIPT)] {
        let link = format!("<script src=\"{name}\"></script>");
        page = page.replace(&link, &format!("<script>{script}</script>"));
    }
    with_state(&page, state)
}

/// Returns the page of a command whose results do not exist yet. It loads itself again.
#[cfg(feature = "simulator")]
pub fn awaited(command: &str) -> String {
    let title = format!("faircast {command}");
    let body = "<h1>The runs are not finished</h1>\n<p>The results appear here.</p>\n";
    let page = faircast_experiments::report::html::page(&title, body);
    page.replacen("<head>", "<head>\n<meta http-equiv=\"refresh\" content=\"2\">", 1)
}

fn with_state(page: &str, state: &impl Serialize) -> String {
    // Names of other hosts must not end the element.
    page.replace("{{state}}", &line(state).replace('<', "\\u003c"))
}

/// Returns a state as JSON in one line.
pub fn line(state: &impl Serialize) -> String {
    let text = serde_json::to_string(state).expect("numbers and texts are JSON");
    safe::json(&text).into_owned()
}

const INDEX: &str = include_str!("assets/index.html");
pub const NETWORK_SCRIPT: &str = include_str!("assets/network.js");
pub const SCRIPT: &str = include_str!("assets/page.js");
pub const STYLE: &str = include_str!("assets/page.css");
pub const PLOT_SCRIPT: &str = include_str!("assets/uplot.js");
pub const PLOT_STYLE: &str = include_str!("assets/uplot.css");
