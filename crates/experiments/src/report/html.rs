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

const STYLE: &str = "\
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #222; font: 16px/1.55 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.2rem 4rem; }
h1 { font-size: 1.8rem; line-height: 1.2; }
h2 { font-size: 1.3rem; margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.2rem; }
p { max-width: 46rem; }
p.soft, td.soft { color: #5f6368; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .92rem; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid #222; padding: .3rem .9rem .3rem 0; vertical-align: bottom; }
td { border-bottom: 1px solid #e4e6e8; padding: .3rem .9rem .3rem 0; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
td.holds { color: #00694b; font-weight: 600; }
td.fails { color: #b03a00; font-weight: 600; }
td.chosen { color: #00694b; }
td.contradicts, td.undecided { color: #7a5a00; }
td.open { color: #5f6368; }
a { color: #0072b2; }
svg { max-width: 100%; height: auto; }
figure { margin: 1rem 0; overflow-x: auto; }
code, pre { font: .86rem/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; }
pre { background: #f6f7f8; padding: .8rem 1rem; overflow-x: auto; }
summary { cursor: pointer; color: #0072b2; }
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
