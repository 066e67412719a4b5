//! Template of a self-contained HTML page.

/// Escapes text for use between tags.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a paragraph.
pub fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

/// Returns a self-contained page: no scripts, fonts or images from other files.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

/// The colours are those of the live page of a session.
const STYLE: &str = "\
:root {
  --back: #f6f7f9; --card: #fff; --text: #16191d; --weak: #59616b; --line: #d5dae0; --focus: #0b57d0;
  --good: #0a7a3b; --run: #1559b8; --slow: #8a4b00; --bad: #b3121d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #111418; --card: #1a1e24; --text: #e8ebef; --weak: #a2abb5; --line: #343b44; --focus: #8ab4f8;
    --good: #7fdca0; --run: #9cc4ff; --slow: #ffc56b; --bad: #ff9a9a;
  }
  svg rect[fill='#ffffff'], svg rect[fill='#f1f2f4'] { fill: var(--card); }
  svg [fill='#222222'] { fill: var(--text); }
  svg [stroke='#222222'] { stroke: var(--text); }
  svg [fill='#0072b2'] { fill: #4db3ea; }
  svg [stroke='#0072b2'] { stroke: #4db3ea; }
  svg [fill='#5f6368'] { fill: var(--weak); }
  svg [stroke='#e4e6e8'] { stroke: var(--line); }
  svg [stroke='#ffffff'] { stroke: var(--card); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: .5rem 1rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
p { max-width: 46rem; }
p, li { overflow-wrap: anywhere; }
p.soft, td.soft { color: var(--weak); }
.wide, figure, pre { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .6rem .9rem; margin: .8rem 0; overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid var(--line); padding: .3rem .9rem .3rem 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: .3rem .9rem .3rem 0; vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td:first-child { min-width: 11rem; }
.n { text-align: right; white-space: nowrap; }
td.holds { color: var(--good); font-weight: 600; }
td.fails { color: var(--bad); font-weight: 600; }
td.chosen { color: var(--good); }
td.contradicts, td.undecided { color: var(--slow); }
td.open { color: var(--weak); }
a, summary { color: var(--run); }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 1px; }
svg { max-width: 100%; height: auto; }
code, pre { font: .86rem/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; }
summary { cursor: pointer; }
@media (max-width: 40rem) { main { padding: .5rem .5rem 2rem; } h1 { font-size: 1.25rem; } figure svg { min-width: 34rem; } }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_page_loads_no_external_resources() {
        let page = page("a < b", &paragraph("x & y"));
        assert!(page.contains("<title>a &lt; b</title>") && page.contains("<p>x &amp; y</p>"));
        for word in ["http://", "https://", "<script", "<link", "url("] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
